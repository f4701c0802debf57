import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Scope } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { DeliveryLog } from "../../src/projection/delivery-log.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { serveNatsApi, startConsole } from "../kit/console.ts"
import { endpoint, eventually, history, worker } from "../kit/engine.ts"
import type { ServiceAnswer } from "../kit/nats-requests.ts"
import { askOverNats } from "../kit/nats-requests.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario, server } = onServer()

/** Asks for operations of a tenant, as a program with a NATS client does. */
const asking = (tenant = "acme") =>
  Effect.gen(function* () {
    const { connection, names } = yield* natsClients
    return (operation: string, body?: unknown, headers?: Readonly<Record<string, string>>) =>
      askOverNats(connection, names.subjects.api(tenant, operation), body, headers)
  })

/** What the services of the installation answer to `$SRV.<verb>.<name>`. */
const srv = (verb: "INFO" | "STATS" | "PING") =>
  Effect.gen(function* () {
    const { connection, names } = yield* natsClients
    return yield* askOverNats(connection, `$SRV.${verb}.${names.subjects.root}`)
  })

interface EndpointStats {
  readonly name: string
  readonly num_requests: number
  readonly num_errors: number
  readonly last_error?: string
  readonly processing_time: number
}

const statsOf = (name: string) =>
  Effect.map(srv("STATS"), ({ json }) =>
    (json.endpoints as ReadonlyArray<EndpointStats>).find((one) => one.name === name)
  )

/** The smallest message that a broker of Petrel takes is 64 KiB: what it says of itself must fit. */
const maxInfoBytes = 60 * 1024

/** Runs a projection until the scope ends. */
const projecting = Effect.gen(function* () {
  const { names } = yield* Broker
  const data = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-service-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  const prefix = names.history.replace(/HISTORY$/, "")
  return yield* serveProjection({
    broker: { url: server().url, prefix, eventRoot: names.eventRoot },
    data,
    keepMs: 3_600_000,
    maxBytes: 1_024 ** 3
  })
})

describe.concurrent("a program that has a NATS client", () => {
  scenario("adds an endpoint, publishes, and sees what became of it", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* worker()
      const facts = yield* history
      const log = yield* projecting
      yield* serveNatsApi().pipe(Effect.provideService(DeliveryLog, log))
      const ask = yield* asking()
      const put = yield* ask("endpoints.put", { id: "billing", url, types: ["invoice.*"] })
      assert.isUndefined(put.code, put.text)
      assert.strictEqual(put.header("etag"), `"${put.json.revision}"`)
      const event = '{"type":"invoice.paid","id":"i1","data":{"n":12345678901234567890}}'
      const published = yield* ask("events.publish", event)
      assert.deepInclude(published.json, { id: "acme.i1", tenant: "acme", duplicate: false })
      const again = yield* ask("events.publish", event)
      assert.deepInclude(again.json, { id: "acme.i1", duplicate: true })
      const keyed = yield* ask(
        "events.publish",
        { type: "invoice.paid", data: 1 },
        { "Idempotency-Key": "i2" }
      )
      assert.strictEqual(keyed.json.id, "acme.i2")
      const batch = yield* ask("events.publish", [
        { type: "invoice.paid", data: 3 },
        { type: "in valid", data: 4 }
      ])
      assert.deepInclude(batch.json, { stored: 1, failed: 1 })
      yield* received(3)
      assert.include(
        requests.map(({ body }) => body.toString("utf8")),
        '{"n":12345678901234567890}'
      )
      yield* facts.count("delivered", 3)
      const rowsOf = ({ json: { deliveries = [] } }: ServiceAnswer) =>
        deliveries as ReadonlyArray<unknown>
      const query = { endpoint: "billing", state: "delivered" }
      yield* eventually(ask("log.list", query), (answer) => rowsOf(answer).length === 3)
      const page = yield* ask("log.list", { ...query, limit: 2 })
      assert.lengthOf(rowsOf(page), 2)
      const rest = yield* ask("log.list", { ...query, limit: 2, cursor: page.json.next })
      assert.lengthOf(rowsOf(rest), 1)
      const shown = yield* ask("deliveries.delivery", { delivery: "acme.i1.billing" })
      assert.deepInclude(shown.json, { event: "acme.i1" })
      const body = yield* ask("deliveries.eventBody", { event: "acme.i1" })
      assert.strictEqual(body.text, '{"n":12345678901234567890}')
      assert.strictEqual(body.header("content-type"), "application/json")
    })
  )

  scenario("gets the problems of the HTTP API, word for word, and changes nothing", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      yield* serveNatsApi()
      const http = yield* startConsole()
      const token = yield* http.token()
      const ask = yield* asking()
      const one = "/v1/tenants/acme/endpoints/billing"
      const before = yield* ask("endpoints.get", { id: "billing" })
      const url = "https://example.com/"
      const stale = '"999"'
      for (const [asked, overHttp] of [
        [ask("endpoints.get", { id: "missing" }), { path: "/v1/tenants/acme/endpoints/missing" }],
        [
          ask("endpoints.patch", { id: "billing", maxInFligth: 5 }),
          { path: one, method: "PATCH", body: { maxInFligth: 5 } }
        ],
        [
          ask("endpoints.patch", { id: "billing", maxInFlight: "x" }),
          { path: one, method: "PATCH", body: { maxInFlight: "x" } }
        ],
        [ask("endpoints.put", { id: "billing" }), { path: one, method: "PUT", body: {} }],
        [
          ask("endpoints.put", { id: "billing", url }, { "If-Match": stale }),
          { path: one, method: "PUT", body: { url }, headers: { "if-match": stale } }
        ],
        [
          ask("endpoints.list", { cursor: "nonsense" }),
          { path: "/v1/tenants/acme/endpoints?cursor=nonsense" }
        ],
        [
          ask("endpoints.list", { limit: 1_000 }),
          { path: "/v1/tenants/acme/endpoints?limit=1000" }
        ],
        [ask("log.list"), { path: "/v1/tenants/acme/deliveries" }],
        [
          ask("events.publish", '{"type":"petrel.x","data":1}'),
          { path: "/v1/tenants/acme/events", method: "POST", body: { type: "petrel.x", data: 1 } }
        ],
        [
          ask("endpoints.patch", { id: "billing", contact: "x".repeat(300_000) }),
          { path: one, method: "PATCH", body: { contact: "x".repeat(300_000) } }
        ]
      ] as const) {
        const { path, ...request } = overHttp
        const [answer, expected] = [yield* asked, yield* http.ask(path, { token, ...request })]
        assert.isAtLeast(expected.status, 400, path)
        assert.deepStrictEqual(answer.json, expected.json)
        assert.strictEqual(answer.code, expected.status)
        assert.strictEqual(answer.error, expected.json.title)
        assert.strictEqual(answer.header("content-type"), "application/problem+json")
        assert.strictEqual(
          answer.header("retry-after"),
          expected.headers.get("retry-after") ?? undefined
        )
      }
      const after = yield* ask("endpoints.get", { id: "billing" })
      assert.strictEqual(after.json.revision, before.json.revision)
    })
  )

  scenario("is answered also where its letters are none, or its headers those of no HTTP", () =>
    Effect.gen(function* () {
      yield* serveNatsApi()
      const ask = yield* asking()
      const half = yield* ask("endpoints.get", '{"id":"\\ud800"}')
      assert.strictEqual(half.code, 400)
      assert.match(half.text, /id must be text in Unicode/)
      const header = yield* ask("endpoints.patch", { id: "e" }, { "If-Match": "\u4e2d\u6587" })
      assert.strictEqual(header.code, 400)
      assert.match(header.text, /if-match must be Latin-1/)
      const inQuery = yield* ask("log.list", '{"endpoint":"\\ud800"}')
      assert.isAtLeast(inQuery.code ?? 0, 400)
    })
  )

  scenario("says in the subject whose things it asks for", () =>
    Effect.gen(function* () {
      yield* endpoint({ tenant: "acme", id: "a" })
      yield* endpoint({ tenant: "globex", id: "b" })
      yield* serveNatsApi()
      const idsOf = (answer: { readonly json: Record<string, unknown> }) =>
        (answer.json.endpoints as ReadonlyArray<{ readonly id: string }>).map(({ id }) => id)
      const [acme, all, star, odd] = [
        yield* asking("acme"),
        yield* asking("_"),
        yield* asking("*"),
        yield* asking("a$b")
      ]
      const isListed = (count: number) => (answer: { readonly json: Record<string, unknown> }) =>
        idsOf(answer).length === count
      assert.deepStrictEqual(idsOf(yield* eventually(acme("endpoints.list"), isListed(1))), ["a"])
      assert.deepStrictEqual(idsOf(yield* eventually(all("endpoints.list"), isListed(2))), [
        "a",
        "b"
      ])
      assert.strictEqual((yield* all("system.tenants")).code, undefined)
      for (const ask of [star, odd]) {
        const refused = yield* ask("endpoints.list")
        assert.strictEqual(refused.code, 400)
        assert.include(String(refused.json.detail), "tenant")
      }
      // What is of all tenants is not to be had by the name of one.
      for (const operation of ["system.tenants", "jobs.audit", "no.such"]) {
        const exit = yield* Effect.exit(acme(operation))
        assert.include(String(exit), "no responders")
      }
      const token = yield* acme("tokens.create", { scopes: ["operator"] })
      assert.strictEqual(token.code, 403, token.text)
    })
  )

  scenario("finds what each operation takes and answers, in an answer of bounded size", () =>
    Effect.gen(function* () {
      yield* serveNatsApi()
      const ask = yield* asking()
      const info = yield* srv("INFO")
      assert.isBelow(Buffer.byteLength(info.text), maxInfoBytes)
      const endpoints = info.json.endpoints as ReadonlyArray<{
        readonly name: string
        readonly metadata: Readonly<Record<string, string>>
      }>
      const names = new Set<string>()
      for (const { metadata, name } of endpoints) {
        if (name === "schemas-get") continue
        assert.match(metadata.answers ?? "", /^20[0-9] /, name)
        assert.isObject(JSON.parse(metadata.request ?? ""), name)
        for (const [, one = ""] of `${metadata.request}`.matchAll(/#\/components\/schemas\/(\w+)/g))
          names.add(one)
        for (const [, one = ""] of `${metadata.answers}`.matchAll(/(?:20\d|or) ([A-Z]\w+)/g))
          names.add(one)
      }
      assert.includeMembers([...names], ["NewEndpoint", "EndpointDetail", "BatchResult"])
      for (const name of names) {
        const { code, json, text } = yield* ask("schemas.get", name)
        assert.isUndefined(code, name)
        const defined = json.$defs as object
        for (const [, one = ""] of text.matchAll(/"#\/\$defs\/(\w+)"/g))
          assert.property(defined, one)
      }
      const put = endpoints.find(({ name }) => name === "endpoints-put")
      assert.deepInclude(JSON.parse(put?.metadata.request ?? ""), {
        allOf: [
          {
            type: "object",
            properties: { id: JSON.parse(put?.metadata.request ?? "").allOf[0].properties.id },
            required: ["id"]
          },
          { $ref: "#/components/schemas/NewEndpoint" }
        ]
      })
      assert.strictEqual((yield* ask("schemas.get", "no such")).code, 404)
    })
  )

  scenario("finds the service with its endpoints, and how they fare", () =>
    Effect.gen(function* () {
      const consoles = [yield* Scope.make(), yield* Scope.make()]
      for (const scope of consoles) yield* serveNatsApi().pipe(Scope.provide(scope))
      const { names } = yield* Broker
      const info = yield* srv("INFO")
      assert.deepInclude(info.json, {
        type: "io.nats.micro.v1.info_response",
        name: names.subjects.root,
        version: packageJson.version,
        description: packageJson.description
      })
      const endpoints = info.json.endpoints as ReadonlyArray<Record<string, unknown>>
      assert.deepInclude(
        endpoints.find(({ name }) => name === "events-publish"),
        { subject: names.subjects.api("*", "events.publish"), queue_group: "q" }
      )
      const [first, second] = consoles
      if (first === undefined || second === undefined) return
      // One answers, whoever it is; then the other one alone, all of whose requests are known.
      const ask = yield* asking()
      assert.isUndefined((yield* ask("endpoints.list")).code)
      yield* Scope.close(first, yield* Effect.exit(Effect.void))
      const before = yield* statsOf("endpoints-get")
      assert.deepInclude(before, { num_requests: 0, num_errors: 0 })
      yield* ask("endpoints.put", { id: "a", url: "https://example.com/" })
      yield* ask("endpoints.get", { id: "a" })
      yield* ask("endpoints.get", { id: "missing" })
      yield* ask("endpoints.get", { idd: "a" })
      const after = yield* statsOf("endpoints-get")
      assert.deepInclude(after, {
        num_requests: 3,
        num_errors: 2,
        last_error: "400: The request is not valid"
      })
      assert.isAbove(after?.processing_time ?? 0, 0)
      yield* Scope.close(second, yield* Effect.exit(Effect.void))
      assert.include(String(yield* Effect.exit(ask("endpoints.list"))), "no responders")
    })
  )
})

describe("where the broker takes small messages, a program that has a NATS client", () => {
  const small = onServer({ config: "max_payload: 64KB" })
  small.scenario("is told that an answer is too large, and gets less of it", () =>
    Effect.gen(function* () {
      yield* serveNatsApi()
      const ask = yield* asking()
      const url = `https://example.com/${"x".repeat(1_000)}`
      for (let n = 100; n < 180; n++) yield* endpoint({ id: `e${n}`, url })
      const refused = yield* eventually(
        ask("endpoints.list", { limit: 80 }),
        ({ code }) => code !== undefined
      )
      assert.strictEqual(refused.code, 413)
      assert.include(String(refused.json.detail), "limit")
      const page = yield* ask("endpoints.list", { limit: 5 })
      assert.lengthOf(page.json.endpoints as ReadonlyArray<unknown>, 5)
      const rest = yield* ask("endpoints.list", { limit: 5, cursor: page.json.next })
      assert.lengthOf(rest.json.endpoints as ReadonlyArray<unknown>, 5)
    })
  )
})
