import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { deafServer, receiver, tcpServer } from "../../kit/receiver.ts"
import { attempt, client, errorOf, post } from "./attempting.ts"

describe("the time-out", () => {
  it.live("ends a request that is not answered, and closes its connection", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: () => undefined })
      const result = yield* attempt(yield* client(), post(to.url, { timeoutMs: 60 }))
      assert.deepStrictEqual(errorOf(result), {
        class: "timeout",
        message: "no answer within 60 ms"
      })
      assert.isAtLeast(result.durationMs, 59)
      assert.isUndefined(result.status)
      yield* to.quiet
    })
  )

  it.live("ends a connection that is not accepted, though it may take longer to connect", () =>
    Effect.gen(function* () {
      const { host } = yield* deafServer
      const agent = yield* client()
      const to = post(`http://${host}`, { timeoutMs: 300, connectTimeoutMs: 60_000 })
      const connecting = () =>
        process.getActiveResourcesInfo().filter((kind) => kind.startsWith("TCPConnect")).length
      const before = connecting()
      const attempts = Array.from({ length: 10 }, () => attempt(agent, to))
      const results = yield* Effect.all(attempts, { concurrency: "unbounded" })
      assert.include(
        results.map((result) => errorOf(result).message),
        "no connection within 300 ms"
      )
      assert.strictEqual(connecting(), before)
    })
  )

  it.live("ends an answer that comes drop by drop", () =>
    Effect.gen(function* () {
      const to = yield* tcpServer((socket) =>
        socket.once("data", () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n")
          const timer = setInterval(() => socket.write("x"), 5)
          socket.on("close", () => clearInterval(timer))
        })
      )
      const result = yield* attempt(yield* client(), post(`http://${to.host}`, { timeoutMs: 100 }))
      assert.deepStrictEqual(errorOf(result), {
        class: "timeout",
        message: "no complete answer within 100 ms"
      })
      assert.strictEqual(result.status, 200)
      yield* to.quiet
    })
  )

  it.live("holds for all redirects together", () =>
    Effect.gen(function* () {
      const redirectMs = 40
      const to = yield* receiver({
        answer: (_, response) => {
          setTimeout(() => {
            response.writeHead(307, { location: "/again" })
            response.end()
          }, redirectMs)
          return undefined
        }
      })
      const result = yield* attempt(
        yield* client(),
        post(to.url, { timeoutMs: 100, redirects: 10 })
      )
      assert.strictEqual(errorOf(result).class, "timeout")
      assert.isBelow(to.requests.length, 4)
      yield* to.quiet
    })
  )

  it.live("never lets a request out later that was still waiting for its connection", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      let resolved = () => {}
      const http = yield* client({
        resolve: (_hostname, _tenant, done) => {
          resolved = () => done([{ address: "127.0.0.1", family: 4 }])
        }
      })
      const result = yield* attempt(
        http,
        post(`http://late.example.test:${to.port}`, { timeoutMs: 50 })
      )
      assert.deepStrictEqual(errorOf(result), {
        class: "timeout",
        message: "no connection within 50 ms"
      })
      assert.strictEqual(to.connections(), 0)
      resolved()
      yield* attempt(http, post(to.url))
      assert.strictEqual(to.connections(), 1)
      assert.strictEqual(to.requests.length, 1)
    })
  )
})

describe("interruption", () => {
  it.live("closes the connection of a request under way", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: () => undefined })
      const running = yield* Effect.forkChild(attempt(yield* client(), post(to.url)))
      yield* to.received(1)
      yield* Fiber.interrupt(running)
      yield* to.quiet
    })
  )

  it.live("takes back a request that waits for its connection", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const lookedUp = Promise.withResolvers<() => void>()
      const http = yield* client({
        resolve: (_hostname, _tenant, done) =>
          lookedUp.resolve(() => done([{ address: "127.0.0.1", family: 4 }]))
      })
      const running = yield* Effect.forkChild(
        attempt(http, post(`http://late.example.test:${to.port}`))
      )
      const resolved = yield* Effect.promise(() => lookedUp.promise)
      yield* Fiber.interrupt(running)
      resolved()
      yield* attempt(http, post(to.url))
      assert.strictEqual(to.connections(), 1)
      assert.strictEqual(to.requests.length, 1)
    })
  )
})
