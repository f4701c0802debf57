import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import { operations, pathOf } from "../kit/api-operations.ts"
import { startConsole } from "../kit/console.ts"
import { eventually } from "../kit/engine.ts"
import { head, rawClient } from "../kit/raw-client.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const events = (tenant: string) => `/v1/tenants/${tenant}/events`
const MiB = 1024 * 1024

const publishHead = (
  tenant: string,
  token: string,
  length: number,
  headers: Readonly<Record<string, string>> = {}
) =>
  head("POST", events(tenant), {
    ...headers,
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "content-length": length
  })

const oneEvent = { method: "POST", body: { type: "invoice.paid", data: {} } }

/** What the parameters of paths are. */
const values = {
  ...{ tenant: "acme", id: "e", number: "1", delivery: "x.e", event: "x", type: "a" },
  ...{ job: "job-1-00000000", token: "0000000000000000" }
}

describe.concurrent("the answers to bodies that are refused", () => {
  scenario("are those that the document has for each operation", () =>
    Effect.gen(function* () {
      const { token: make, url } = yield* startConsole()
      const token = yield* make({ tenant: "*" })
      const { paths } = apiDocument() as {
        readonly paths: Record<string, Record<string, { readonly responses: object }>>
      }
      const length = "content-length"
      const wrong = [
        ["408", { [length]: 10 }, "{"],
        ["413", { [length]: 17 * MiB }, ""],
        ["415", { [length]: 2, "content-encoding": "gzip" }, "{}"]
      ] as const
      const differing = yield* Effect.forEach(
        operations.flatMap((operation) => wrong.map((one) => [operation, one] as const)),
        Effect.fnUntraced(function* ([operation, [status, headers, body]]) {
          const { id, method, path } = operation
          const client = yield* rawClient(url)
          const said = {
            ...{ authorization: `Bearer ${token}`, "content-type": "application/json" },
            ...headers
          }
          client.send(head(method, pathOf(operation, values), said))
          client.send(body)
          const heard = yield* eventually(Effect.sync(client.heard), (heard) => heard !== "")
          client.leave()
          const answered = heard.split(" ")[1]
          const responses = Object.keys(paths[path]?.[method.toLowerCase()]?.responses ?? {})
          const isAnswered = answered === status
          return responses.includes(status) === isAnswered ? [] : [`${id}: ${answered}, ${status}`]
        }),
        { concurrency: 64 }
      )
      assert.deepStrictEqual(differing.flat(), [])
    })
  )
})

describe.concurrent("the body of a request", () => {
  scenario("counts by what has come of it, not by what it declares", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole()
      const token = yield* make()
      const clients = yield* Effect.all(Array.from({ length: 40 }, () => rawClient(url)))
      for (const client of clients)
        client.send(publishHead("acme", token, 16 * MiB, { expect: "100-continue" }))
      // The server waits for their bodies, or has refused them.
      yield* eventually(
        Effect.sync(() => clients.filter((one) => one.heard() !== "")),
        ({ length }) => length === clients.length
      )
      for (const client of clients) assert.match(client.heard(), /^HTTP\/1\.1 100 /)
      const answer = yield* ask(events("acme"), { ...oneEvent, token })
      assert.strictEqual(answer.status, 201, answer.text)
    })
  )

  scenario(
    "takes memory of its tenant, and what a tenant has too much of is refused to it alone",
    () =>
      Effect.gen(function* () {
        const { ask, token: make, url } = yield* startConsole({ bodiesBytes: MiB })
        const [acme, globex] = [yield* make(), yield* make({ tenant: "globex" })]
        const part = Buffer.alloc(200 * 1024, " ")
        const clients = yield* Effect.all(Array.from({ length: 8 }, () => rawClient(url)))
        for (const client of clients) {
          client.send(publishHead("acme", acme, MiB))
          client.send(part)
        }
        const refused = () => clients.filter((one) => one.heard().startsWith("HTTP/1.1 503"))
        // Two fit; where all come piece by piece at the same time, others may take what they would need.
        yield* eventually(Effect.sync(refused), ({ length }) => length >= 6)
        for (const one of refused()) assert.match(one.heard(), /retry-after: 1\r\n/)
        const answer = yield* ask(events("globex"), { ...oneEvent, token: globex })
        assert.strictEqual(answer.status, 201, answer.text)
        const { text } = yield* ask("/metrics")
        assert.match(text, /petrel_refused_requests_total\{bound="bodies"\} [678]\n/)
        for (const client of clients) client.leave()
        const again = ask(events("acme"), { ...oneEvent, token: acme, body: part })
        yield* eventually(again, ({ status }) => status === 400)
      })
  )

  scenario("counts as what it becomes where its JSON is decoded, and events' is not", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole({ bodiesBytes: MiB })
      const token = yield* make()
      const put = (size: number) =>
        ask("/v1/tenants/acme/endpoints/some", {
          method: "PUT",
          token,
          body: { url: "https://example.com", description: "a".repeat(size) }
        })
      const refused = yield* put(40 * 1024)
      assert.strictEqual(refused.status, 503, refused.text)
      assert.strictEqual(refused.headers.get("retry-after"), "1")
      assert.strictEqual(refused.json.retryAfter, 1)
      assert.strictEqual((yield* put(100)).status, 201)
      const body = { type: "invoice.paid", data: "a".repeat(40 * 1024) }
      assert.strictEqual((yield* ask(events("acme"), { method: "POST", body, token })).status, 201)
    })
  )

  scenario("is one piece, however it comes", () =>
    Effect.gen(function* () {
      const { token: make, url } = yield* startConsole()
      const token = yield* make()
      const body = JSON.stringify({ type: "invoice.paid", data: "b".repeat(600 * 1024) })
      const client = yield* rawClient(url)
      client.send(publishHead("acme", token, body.length))
      // As pieces that fit into what is reserved, and that do not.
      for (let at = 0, size = 1; at < body.length; at += size, size *= 3)
        client.send(body.slice(at, at + size))
      yield* eventually(Effect.sync(client.heard), (heard) => heard !== "")
      assert.match(client.heard(), /^HTTP\/1\.1 201 /)
      const chunked = yield* rawClient(url)
      chunked.send(
        head("POST", events("acme"), {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          "transfer-encoding": "chunked"
        })
      )
      for (let at = 0; at < body.length; at += 100_000) {
        const piece = body.slice(at, at + 100_000)
        chunked.send(`${piece.length.toString(16)}\r\n${piece}\r\n`)
      }
      chunked.send("0\r\n\r\n")
      yield* eventually(Effect.sync(chunked.heard), (heard) => heard !== "")
      assert.match(chunked.heard(), /^HTTP\/1\.1 201 /)
    })
  )

  scenario("that comes too slowly is refused, and its connection destroyed", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole({ paceMs: 300 })
      const client = yield* rawClient(url)
      client.send(`${publishHead("acme", yield* make(), MiB)}[`)
      const heard = Effect.sync(() => {
        client.send(" ")
        return client.heard()
      })
      yield* eventually(heard, (text) => text.includes("comes too slowly"))
      assert.match(client.heard(), /^HTTP\/1\.1 408 /)
      assert.include(client.heard(), '"urn:petrel:problem:request-timeout"')
      yield* eventually(Effect.sync(client.isOpen), (isOpen) => !isOpen)
      assert.include((yield* ask("/metrics")).text, 'refused_requests_total{bound="pace"} 1\n')
    })
  )

  scenario("that is not there in time is refused, and its connection destroyed", () =>
    Effect.gen(function* () {
      const { token: make, url } = yield* startConsole({ requestWithin: 500, paceMs: 20_000 })
      const client = yield* rawClient(url)
      client.send(`${publishHead("acme", yield* make(), MiB)}[`)
      yield* eventually(Effect.sync(client.heard), (text) => text.includes("did not arrive"))
      assert.match(client.heard(), /^HTTP\/1\.1 408 /)
      yield* eventually(Effect.sync(client.isOpen), (isOpen) => !isOpen)
    })
  )

  scenario("is refused by what it declares where that is more than the route takes", () =>
    Effect.gen(function* () {
      const { token: make, url } = yield* startConsole()
      const token = yield* make()
      const client = yield* rawClient(url)
      client.send(publishHead("acme", token, 16 * MiB + 1))
      yield* eventually(Effect.sync(client.heard), (text) => text.includes("16 MiB that this"))
      assert.match(client.heard(), /^HTTP\/1\.1 413 /)
    })
  )
})
