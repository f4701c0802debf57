import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { startConsole } from "../kit/console.ts"
import { endpoint, eventually, worker } from "../kit/engine.ts"
import { head, type RawClient, rawClient } from "../kit/raw-client.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const endpoints = "/v1/tenants/acme/endpoints"
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const clients = (count: number, url: string, from?: string) =>
  Effect.all(
    Array.from({ length: count }, () => rawClient(url, from)),
    { concurrency: 64 }
  )

/** Waits until all clients have heard something, and returns the status of each first answer. */
const answered = (some: ReadonlyArray<RawClient>) =>
  Effect.map(
    eventually(
      Effect.sync(() => some.map((one) => /^HTTP\/1\.1 (\d+) /.exec(one.heard())?.[1])),
      (heard) => !heard.includes(undefined)
    ),
    (heard) => heard.map(Number)
  )

describe.concurrent("connections without a token", () => {
  scenario("leave room for those with one, also where they come from the same address", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole()
      const token = yield* make()
      for (const one of yield* clients(1_100, url)) one.send("GET / HTTP/1.1\r\n")
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, () => ask(endpoints, { token })),
        { concurrency: 20 }
      )
      assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200])
      const { text } = yield* ask("/metrics")
      assert.match(text, /refused_requests_total\{bound="connections"\} [1-9]/)
      // Each of the 20 came as a stranger, for which another one had to go.
      assert.match(text, /petrel_api_connections\{token="none"\} (?:49\d|50\d|51\d)\n/)
    })
  )

  scenario("are closed where their address has most", () =>
    Effect.gen(function* () {
      const { url } = yield* startConsole({ maxConnections: 64 })
      const slow = yield* rawClient(url)
      slow.send("GET /healthz HTTP/1.1\r\n")
      const many = yield* clients(96, url, "127.0.0.2")
      for (const one of many) one.send("GET / HTTP/1.1\r\nx: ")
      yield* eventually(
        Effect.sync(() => many.filter((one) => one.isOpen()).length),
        (open) => open === 31
      )
      slow.send("host: 127.0.0.1\r\n\r\n")
      assert.deepStrictEqual(yield* answered([slow]), [200])
    })
  )
})

describe("who connects again as soon as it is closed", () => {
  scenario("is held for a second each time, while others connect", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole({ maxConnections: 64 })
      const token = yield* make()
      let connected = 0
      const attacker = Effect.gen(function* () {
        connected++
        const client = yield* rawClient(url, "127.0.0.2")
        client.send("GET / HTTP/1.1\r\nx: ")
        yield* client.closed
      }).pipe(Effect.scoped, Effect.forever)
      const attack = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 100 }, () => attacker),
          { concurrency: "unbounded" }
        )
      )
      yield* eventually(ask("/metrics"), ({ text }) =>
        /^petrel_api_held_connections [1-9]/m.test(text)
      )
      const [took] = yield* Effect.timed(
        Effect.forEach(Array.from({ length: 50 }), () =>
          Effect.map(
            ask("/v1/tenants/acme/endpoints", { token, headers: { connection: "close" } }),
            ({ status }) => assert.strictEqual(status, 200)
          )
        )
      )
      yield* Fiber.interrupt(attack)
      // Each of the attacker's comes again once a second at most; at once it were thousands.
      assert.isAtMost(connected, 100 * (4 + Duration.toSeconds(took)))
    })
  )
})

describe.concurrent("what one token does at the same time", () => {
  scenario("is so many connections, of which idle ones are closed for others", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole({ maxConnections: 32 })
      const [acme, globex] = [yield* make(), yield* make({ tenant: "globex" })]
      const request = head("GET", endpoints, bearer(acme))
      // One after the other, so that each is known before the next one comes.
      const known: Array<RawClient> = []
      for (let n = 0; n < 40; n++) {
        const one = yield* rawClient(url)
        one.send(request)
        assert.deepStrictEqual(yield* answered([one]), [200])
        known.push(one)
      }
      yield* eventually(
        Effect.sync(() => known[0]?.heard() ?? ""),
        (heard) => /HTTP\/1\.1 503 .*\r\nretry-after: 1\r\n.*too many connections/s.test(heard)
      )
      const other = yield* ask("/v1/tenants/globex/endpoints", { token: globex })
      assert.strictEqual(other.status, 200)
    })
  )

  scenario("is so many requests, and others go on", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole()
      const [token, another] = [yield* make(), yield* make()]
      const waiting = yield* clients(128, url)
      const body = { expect: "100-continue", "content-length": 100 }
      for (const one of waiting)
        one.send(head("POST", "/v1/tenants/acme/events", { ...bearer(token), ...body }))
      assert.deepStrictEqual([...new Set(yield* answered(waiting))], [100])
      const refused = yield* ask(endpoints, { token })
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(refused.headers.get("retry-after"), "1")
      assert.include(String(refused.json.detail), "128 requests that are not answered yet")
      assert.strictEqual((yield* ask(endpoints, { token: another })).status, 200)
      assert.include(
        (yield* ask("/metrics")).text,
        'petrel_refused_requests_total{bound="requests"} 1\n'
      )
      for (const one of waiting) one.leave()
      yield* eventually(ask(endpoints, { token }), ({ status }) => status === 200)
    })
  )

  scenario("is so many streams of failures, which end when their clients leave", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole()
      const [token, another] = [yield* make(), yield* make()]
      const live = "/v1/tenants/acme/live"
      const following = yield* clients(16, url)
      for (const one of following) one.send(head("GET", live, bearer(token)))
      assert.deepStrictEqual([...new Set(yield* answered(following))], [200])
      const refused = yield* ask(live, { token })
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(refused.headers.get("retry-after"), "1")
      assert.include(String(refused.json.detail), "16 streams of failures")
      const other = yield* rawClient(url)
      other.send(head("GET", live, bearer(another)))
      assert.deepStrictEqual(yield* answered([other]), [200])
      for (const one of following) one.leave()
      const follow = Effect.promise(async () => {
        const controller = new AbortController()
        const { signal } = controller
        const { status } = await fetch(`${url}${live}`, { headers: bearer(token), signal })
        controller.abort()
        return status
      })
      yield* eventually(follow, (status) => status === 200)
    })
  )
})

describe.concurrent("test events", () => {
  scenario(
    "of one tenant leave room for those of others, and end when their clients leave",
    () =>
      Effect.gen(function* () {
        const silent = yield* receiver({ answer: () => new Promise(() => undefined) })
        const quick = yield* receiver()
        yield* endpoint({ id: "silent", url: silent.url })
        yield* endpoint({ id: "quick", url: quick.url })
        yield* endpoint({ tenant: "globex", id: "quick", url: quick.url })
        yield* worker()
        const { ask, token: make, url } = yield* startConsole()
        const [acme, globex] = [yield* make(), yield* make({ tenant: "globex" })]
        const test = (tenant: string, id: string, token: string) =>
          ask(`/v1/tenants/${tenant}/endpoints/${id}/test`, { method: "POST", token })
        yield* eventually(test("acme", "quick", acme), ({ status }) => status === 200)
        const waiting = yield* clients(12, url)
        const request = head("POST", `${endpoints}/silent/test`, {
          ...bearer(acme),
          "content-length": 0
        })
        for (const one of waiting) one.send(request)
        yield* eventually(
          Effect.sync(() => waiting.filter((one) => one.heard().startsWith("HTTP/1.1 503")).length),
          (refused) => refused >= 4
        )
        const other = yield* test("globex", "quick", globex)
        assert.strictEqual(other.status, 200, other.text)
        for (const one of waiting) one.leave()
        yield* eventually(test("acme", "quick", acme), ({ status }) => status === 200)
      }),
    { partitions: 1 }
  )
})
