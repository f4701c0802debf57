import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { receiver, tcpServer } from "../../kit/receiver.ts"
import { answered, attempt, client, post } from "./attempting.ts"

describe("an answer", () => {
  it.live("is told with status, kept headers, body and times", () =>
    Effect.gen(function* () {
      const to = yield* receiver({
        answer: {
          status: 429,
          headers: {
            "Content-Type": "text/plain",
            "Content-Length": 9,
            "Retry-After": "120",
            "X-Request-Id": "r-1",
            "Set-Cookie": "session=secret",
            "X-Other": "dropped",
            Server: "s".repeat(300)
          },
          body: "slow down"
        }
      })
      const result = yield* attempt(yield* client(), post(to.url))
      assert.strictEqual(result.status, 429)
      assert.strictEqual(result.retryAfter, "120")
      assert.strictEqual(result.response?.body, "slow down")
      assert.strictEqual(result.response?.bytes, 9)
      const { date, ...headers } = result.response?.headers ?? {}
      assert.isString(date)
      assert.deepStrictEqual(headers, {
        "content-length": "9",
        "content-type": "text/plain",
        "retry-after": "120",
        server: "s".repeat(256),
        "x-request-id": "r-1"
      })
      const { connectMs = -1, firstByteMs = -1, durationMs } = result
      assert.isTrue(
        0 <= connectMs && connectMs <= firstByteMs && firstByteMs <= durationMs,
        `${connectMs} ${firstByteMs} ${durationMs}`
      )
    })
  )

  it.live("keeps where a redirect that is not followed leads, without its query", () =>
    Effect.gen(function* () {
      const to = yield* receiver({
        answer: { status: 303, headers: { location: "https://login.test/in?token=secret" } }
      })
      const result = yield* attempt(yield* client(), post(to.url))
      assert.strictEqual(result.response?.headers.location, "https://login.test/in")
    })
  )

  it.live("is kept to its first 1024 bytes, without the half of a character", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { body: `x${"é".repeat(600)}` } })
      const { response } = yield* attempt(yield* client(), post(to.url))
      assert.strictEqual(response?.body, `x${"é".repeat(511)}`)
      assert.strictEqual(response?.bytes, 1201)
    })
  )

  it.live("in pieces is put together", () =>
    Effect.gen(function* () {
      const pieces = ["first, ", "second, ", "third"]
      const to = yield* receiver({
        answer: (_, response) => {
          const next = () => {
            const piece = pieces.shift()
            if (piece === undefined) response.end()
            else response.write(piece, () => setImmediate(next))
          }
          next()
          return undefined
        }
      })
      const { response } = yield* attempt(yield* client(), post(to.url))
      assert.strictEqual(response?.body, "first, second, third")
    })
  )

  it.live("that is no text does no harm", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { body: Buffer.from([0x61, 0xff, 0xfe, 0x62]) } })
      const { response } = yield* attempt(yield* client(), post(to.url))
      assert.strictEqual(response?.body, "a\ufffd\ufffdb")
    })
  )

  it.live("of exactly 64 KiB is read to its end, and the connection kept", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { body: Buffer.alloc(64 * 1024, "x") } })
      const http = yield* client()
      const { status, response } = yield* attempt(http, post(to.url))
      yield* attempt(http, post(to.url))
      assert.deepStrictEqual([status, response?.bytes], [200, 65_536])
      assert.strictEqual(to.connections(), 1)
    })
  )

  it.live("without end is cut at 64 KiB: its status counts, its connection is closed", () =>
    Effect.gen(function* () {
      const to = yield* tcpServer((socket) => {
        socket.once("data", () => {
          socket.write("HTTP/1.1 201 Created\r\ncontent-type: text/plain\r\n\r\n")
          const more = () => {
            if (!socket.destroyed) socket.write(Buffer.alloc(16_384, "x"), () => setImmediate(more))
          }
          more()
        })
      })
      const result = yield* attempt(yield* client(), post(`http://${to.host}`))
      assert.isUndefined(result.error)
      assert.strictEqual(result.status, 201)
      assert.deepStrictEqual(result.response, {
        headers: { "content-type": "text/plain" },
        body: "x".repeat(1024),
        bytes: 65_536
      })
      yield* to.quiet
    })
  )

  it.live("may be announced by hints before it", () =>
    Effect.gen(function* () {
      const to = yield* tcpServer(
        answered(
          "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
        )
      )
      const result = yield* attempt(yield* client(), post(`http://${to.host}`))
      assert.strictEqual(result.status, 200)
      assert.strictEqual(result.response?.body, "ok")
    })
  )
})
