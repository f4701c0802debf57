import type { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { AgentTransport } from "../../../src/delivery/http/egress.ts"
import { receiver, tcpServer } from "../../kit/receiver.ts"
import { attempt, client, errorOf, post } from "./attempting.ts"

describe("a request", () => {
  it.live("is a POST with the given headers, to path and query", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const result = yield* attempt(yield* client(), post(`${to.url}/hooks/a%20b?x=1#gone`))
      assert.strictEqual(result.status, 200)
      assert.isUndefined(result.error)
      const [request] = to.requests
      assert.strictEqual(request?.method, "POST")
      assert.strictEqual(request?.path, "/hooks/a%20b?x=1")
      assert.include(request?.headers, {
        host: to.host,
        "content-type": "application/json",
        "content-length": "7",
        "webhook-id": "evt_1",
        authorization: "Bearer of the endpoint"
      })
    })
  )

  const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  const inside = new Uint8Array(every.buffer, every.byteOffset + 100, 56)
  it.live.each([
    ["empty", new Uint8Array(), 0],
    ["an empty part of a larger buffer", inside.subarray(0, 0), 0],
    ["of all bytes there are", every, 256],
    ["a part of a larger buffer", inside, 56],
    ["of a megabyte", Buffer.alloc(1 << 20, every), 1 << 20]
  ] as const)("carries a body that is %s byte for byte", ([, body, length]) =>
    Effect.gen(function* () {
      const to = yield* receiver()
      yield* attempt(yield* client(), post(to.url, { body }))
      const got = to.requests[0]
      assert.strictEqual(got?.headers["content-length"], String(length))
      assert.isTrue(got?.body.equals(Buffer.from(body)))
    })
  )

  it.live("uses one connection for one after the other, and tells which one had to connect", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { body: "ok" } })
      const http = yield* client()
      const first = yield* attempt(http, post(to.url))
      assert.isNumber(first.connectMs)
      for (let i = 0; i < 20; i++) {
        const next = yield* attempt(http, post(to.url))
        assert.isUndefined(next.connectMs)
      }
      assert.strictEqual(to.connections(), 1)
      assert.strictEqual(to.requests.length, 21)
    })
  )

  it.live("finds the connection of an answer free, also of one that came with others", () =>
    Effect.gen(function* () {
      const atOnce = 4
      const rounds = 50
      let waiting: Array<Socket> = []
      const to = yield* tcpServer((socket) =>
        socket.on("data", () => {
          if (waiting.push(socket) < atOnce) return
          const answered = waiting
          waiting = []
          for (const each of answered) each.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        })
      )
      const http = yield* client()
      const transport = new AgentTransport(
        () => http,
        () => true
      )
      yield* Effect.callback<void>((resume) => {
        let lanes = atOnce
        const next = (left: number): void => {
          if (left > 0) transport.start(post(`http://${to.host}`), () => next(left - 1))
          else if (--lanes === 0) resume(Effect.void)
        }
        for (let lane = 0; lane < atOnce; lane++) next(rounds)
      })
      assert.strictEqual(to.connections(), atOnce)
    })
  )

  it.live("does not wait for others to the same endpoint", () =>
    Effect.gen(function* () {
      const held: Array<() => void> = []
      const to = yield* receiver({
        answer: () => new Promise((resolve) => held.push(() => resolve({})))
      })
      const http = yield* client()
      const all = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 25 }, () => attempt(http, post(to.url))),
          { concurrency: "unbounded" }
        )
      )
      yield* to.received(25)
      for (const release of held) release()
      for (const { status } of yield* Fiber.join(all)) assert.strictEqual(status, 200)
    })
  )

  it.live("with a header that HTTP does not allow is a result, not a defect", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const bad = post(to.url, { headers: ["webhook-id", "a\r\nx-injected: 1"] })
      const { class: kind, message } = errorOf(yield* attempt(yield* client(), bad))
      assert.strictEqual(kind, "protocol")
      assert.match(message, /invalid webhook-id header/)
      assert.strictEqual(to.requests.length, 0)
    })
  )

  it.live("on a client that is closed is a result, not a defect", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const http = yield* Effect.scoped(client())
      const error = errorOf(yield* attempt(http, post(to.url)))
      assert.deepStrictEqual(error, { class: "connection", message: "the worker is shutting down" })
    })
  )
})
