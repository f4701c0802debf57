import { createHash } from "node:crypto"
import type { Socket } from "node:net"
import { setDefaultCACertificates } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { AttemptRequest } from "../../src/delivery/attempt.ts"
import { type AgentOptions, agent } from "../../src/delivery/connector.ts"
import { targetOf } from "../../src/delivery/redirect.ts"
import type { AttemptResult } from "../../src/domain/outcome.ts"
import { receiver, selfSigned, tcpServer } from "../receiver.ts"
import { attempt } from "./attempting.ts"

const local = (ip: string) => ip === "127.0.0.1" || ip === "::ffff:127.0.0.1"
const client = (options: Partial<AgentOptions> = {}) => agent({ allows: local, ...options })

const post = (url: string, overrides: Partial<AttemptRequest> = {}): AttemptRequest => ({
  target: targetOf(url),
  headers: ["content-type", "application/json", "webhook-id", "evt_1", "webhook-signature", "v1,x"],
  ownHeaders: ["authorization", "Bearer of the endpoint"],
  body: Buffer.from('{"a":1}'),
  timeoutMs: 5000,
  redirects: 3,
  ...overrides
})

const answered = (raw: string) => (socket: Socket) => {
  socket.once("data", () => socket.write(raw))
}

const errorOf = (result: AttemptResult) => {
  assert.isDefined(result.error, `no error in ${JSON.stringify(result)}`)
  return result.error ?? { class: "none", message: "" }
}

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

describe("no answer", () => {
  it.live("is what a hint of one is, when nothing comes after it", () =>
    Effect.gen(function* () {
      const to = yield* tcpServer(answered("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"))
      const result = yield* attempt(yield* client(), post(`http://${to.host}`, { timeoutMs: 60 }))
      assert.strictEqual(errorOf(result).message, "no answer within 60 ms")
      assert.isUndefined(result.status)
    })
  )

  it.live("because nobody listens is a connection error", () =>
    Effect.gen(function* () {
      const to = yield* Effect.scoped(receiver())
      const result = yield* attempt(yield* client(), post(to.url))
      assert.deepStrictEqual(errorOf(result), {
        class: "connection",
        message: `connect ECONNREFUSED ${to.host}`
      })
      assert.isUndefined(result.status)
      assert.isUndefined(result.response)
      assert.isNumber(result.durationMs)
    })
  )

  it.live("at any address of a name tells each of them once", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(receiver())
      const http = yield* client({
        allows: (ip) => ip.startsWith("127."),
        resolve: (_hostname, _options, done) =>
          done(null, [
            { address: "127.0.0.1", family: 4 },
            { address: "127.0.0.2", family: 4 }
          ])
      })
      assert.deepStrictEqual(
        errorOf(yield* attempt(http, post(`http://two.example.test:${port}`))),
        {
          class: "connection",
          message: `connect ECONNREFUSED 127.0.0.1:${port}; connect ECONNREFUSED 127.0.0.2:${port}`
        }
      )
    })
  )

  it.live("because the connection is reset is a connection error, and is not sent twice", () =>
    Effect.gen(function* () {
      let requests = 0
      const to = yield* tcpServer((socket) =>
        socket.once("data", () => {
          requests++
          socket.resetAndDestroy()
        })
      )
      const error = errorOf(yield* attempt(yield* client(), post(`http://${to.host}`)))
      assert.deepStrictEqual(error, {
        class: "connection",
        message: "the receiver reset the connection before an answer"
      })
      assert.deepStrictEqual([requests, to.connections()], [1, 1])
    })
  )

  it.live("because the receiver hangs up is a connection error", () =>
    Effect.gen(function* () {
      const to = yield* tcpServer((socket) => socket.once("data", () => socket.end()))
      const result = yield* attempt(yield* client(), post(`http://${to.host}`))
      assert.deepStrictEqual(errorOf(result), {
        class: "connection",
        message: "the receiver closed the connection before an answer"
      })
      assert.isUndefined(result.status)
    })
  )

  it.live.each([
    ["its head", "HTTP/1.1 200 OK\r\ncontent-le"],
    ["its length is reached", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"],
    ["its last chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"]
  ] as const)("that ends before %s is a connection error", ([, raw]) =>
    Effect.gen(function* () {
      const to = yield* tcpServer((socket) => socket.once("data", () => socket.end(raw)))
      const error = errorOf(yield* attempt(yield* client(), post(`http://${to.host}`)))
      assert.strictEqual(error.class, "connection")
      assert.match(error.message, /^the receiver closed the connection before/)
    })
  )

  it.live("that is complete keeps its status when the rest breaks off", () =>
    Effect.gen(function* () {
      const to = yield* tcpServer((socket) =>
        socket.once("data", () => socket.end("HTTP/1.1 500 No\r\ncontent-length: 10\r\n\r\nabc"))
      )
      const result = yield* attempt(yield* client(), post(`http://${to.host}`))
      assert.strictEqual(result.status, 500)
      assert.strictEqual(result.response?.body, "abc")
      assert.strictEqual(
        errorOf(result).message,
        "the receiver closed the connection before the answer was complete"
      )
    })
  )

  it.live.each([
    ["garbage", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    ["a head without end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}`],
    [
      "a switch to another protocol",
      "HTTP/1.1 101 OK\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"
    ],
    ["100 Continue", "HTTP/1.1 100 Continue\r\n\r\n"]
  ] as const)("but %s is a protocol error", ([, raw]) =>
    Effect.gen(function* () {
      const to = yield* tcpServer(answered(raw))
      const error = errorOf(yield* attempt(yield* client(), post(`http://${to.host}`)))
      assert.strictEqual(error.class, "protocol", error.message)
      yield* to.quiet
    })
  )

  it.live("because the name does not resolve is a dns error", () =>
    Effect.gen(function* () {
      const error = errorOf(
        yield* attempt(yield* client(), post("http://no-such-host.invalid/", { timeoutMs: 20_000 }))
      )
      assert.strictEqual(error.class, "dns")
      assert.match(error.message, /^getaddrinfo (ENOTFOUND|EAI_AGAIN) no-such-host\.invalid$/)
    })
  )

  it.live("because nobody trusts the certificate is a tls error", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ certificate: selfSigned("IP:127.0.0.1") })
      assert.deepStrictEqual(errorOf(yield* attempt(yield* client(), post(to.url))), {
        class: "tls",
        message: "self-signed certificate"
      })
      assert.strictEqual(to.requests.length, 0)
    })
  )

  it.live("because the certificate is another host's is a tls error", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("DNS:other.example.test")
      setDefaultCACertificates([certificate.cert])
      const to = yield* receiver({ certificate })
      const error = errorOf(yield* attempt(yield* client(), post(to.url)))
      assert.strictEqual(error.class, "tls")
      assert.match(error.message, /does not match certificate's altnames/)
    })
  )

  it.live("because the other side speaks no TLS is a tls error", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const error = errorOf(yield* attempt(yield* client(), post(`https://${to.host}`)))
      assert.strictEqual(error.class, "tls")
      assert.match(error.message, /^TLS: /)
    })
  )

  it.live("because no connection comes about is a connect time-out", () =>
    Effect.gen(function* () {
      const silent = yield* tcpServer(() => {})
      const http = yield* client({ connectTimeoutMs: 50 })
      const error = errorOf(yield* attempt(http, post(`https://${silent.host}`)))
      assert.strictEqual(error.class, "connect-timeout")
      assert.match(error.message, /^no connection within the time-out .*50ms/)
    })
  )

  it.live("because the address is not allowed is an address error", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ host: "127.0.0.2" })
      assert.deepStrictEqual(errorOf(yield* attempt(yield* client(), post(to.url))), {
        class: "address",
        message: "the address 127.0.0.2 is not allowed"
      })
      assert.strictEqual(to.connections(), 0)
    })
  )
})

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
      const to = yield* receiver({
        answer: (_, response) => {
          setTimeout(() => {
            response.writeHead(307, { location: "/again" })
            response.end()
          }, 40)
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
        resolve: (_hostname, _options, done) => {
          resolved = () => done(null, [{ address: "127.0.0.1", family: 4 }])
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
      yield* to.quiet
      assert.strictEqual(to.connections(), 1)
      assert.strictEqual(to.requests.length, 0)
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
        resolve: (_hostname, _options, done) =>
          lookedUp.resolve(() => done(null, [{ address: "127.0.0.1", family: 4 }]))
      })
      const running = yield* Effect.forkChild(
        attempt(http, post(`http://late.example.test:${to.port}`))
      )
      const resolved = yield* Effect.promise(() => lookedUp.promise)
      yield* Fiber.interrupt(running)
      resolved()
      yield* to.quiet
      assert.strictEqual(to.requests.length, 0)
    })
  )
})

describe("a redirect", () => {
  const digest = (body: Buffer) => createHash("sha256").update(body).digest("hex")

  it.live.each([301, 302, 307, 308])("with %i is followed with the same POST", (status) =>
    Effect.gen(function* () {
      const body = Buffer.from([0, 1, 2, 255])
      const to = yield* receiver({
        answer: ({ path }) =>
          path === "/old" ? { status, headers: { location: "/new?x=1" } } : { body: "here" }
      })
      const result = yield* attempt(yield* client(), post(`${to.url}/old`, { body }))
      assert.deepStrictEqual([result.status, result.response?.body], [200, "here"])
      const [first, second] = to.requests
      assert.deepStrictEqual([second?.method, second?.path], ["POST", "/new?x=1"])
      assert.strictEqual(digest(second?.body ?? Buffer.of()), digest(body))
      assert.deepStrictEqual(second?.headers, first?.headers)
      assert.strictEqual(to.connections(), 1)
    })
  )

  it.live.each([300, 303, 304])("with %i is an answer like any other", (status) =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status, headers: { location: "/new" } } })
      const result = yield* attempt(yield* client(), post(to.url))
      assert.deepStrictEqual([result.status, result.error], [status, undefined])
      assert.strictEqual(to.requests.length, 1)
    })
  )

  it.live("is an answer like any other where none may be followed", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 307, headers: { location: "/new" } } })
      const result = yield* attempt(yield* client(), post(to.url, { redirects: 0 }))
      assert.deepStrictEqual([result.status, result.error], [307, undefined])
      assert.strictEqual(to.requests.length, 1)
    })
  )

  it.live("in a circle ends after as many as are allowed", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 308, headers: { location: "/" } } })
      const result = yield* attempt(yield* client(), post(to.url, { redirects: 3 }))
      assert.strictEqual(result.status, 308)
      assert.deepStrictEqual(errorOf(result), {
        class: "redirect",
        message: "more than 3 redirects (status 308)"
      })
      assert.strictEqual(to.requests.length, 4)
    })
  )

  it.live("to another origin drops the endpoint's own headers, for good", () =>
    Effect.gen(function* () {
      const home = yield* receiver()
      const other = yield* receiver({
        answer: () => ({ status: 307, headers: { location: `${home.url}/back` } })
      })
      home.answer(({ path }) =>
        path === "/" ? { status: 307, headers: { location: `${other.url}/away` } } : {}
      )
      const result = yield* attempt(yield* client(), post(home.url))
      assert.strictEqual(result.status, 200)
      const [away] = other.requests
      const [first, back] = home.requests
      assert.property(first?.headers, "authorization")
      for (const request of [away, back]) {
        assert.notProperty(request?.headers, "authorization")
        assert.include(request?.headers, { "webhook-id": "evt_1", "webhook-signature": "v1,x" })
      }
      assert.strictEqual(away?.headers.host, other.host)
    })
  )

  it.live("leads nowhere that is not allowed", () =>
    Effect.gen(function* () {
      const hidden = yield* receiver({ host: "127.0.0.2" })
      const to = yield* receiver()
      const http = yield* client()
      for (const location of [hidden.url, `http://[::1]:${hidden.port}/`, "http://0x7f000002/"]) {
        to.answer({ status: 307, headers: { location } })
        const result = yield* attempt(http, post(to.url))
        assert.strictEqual(errorOf(result).class, "address", location)
        assert.isUndefined(result.status)
      }
      assert.strictEqual(hidden.connections(), 0)
    })
  )

  it.live("from https to http is refused, from https to https is not", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("IP:127.0.0.1")
      setDefaultCACertificates([certificate.cert])
      const plain = yield* receiver()
      const secure = yield* receiver({ certificate })
      const http = yield* client()
      secure.answer({ status: 307, headers: { location: `${plain.url}/hook?secret=1` } })
      assert.deepStrictEqual(errorOf(yield* attempt(http, post(secure.url))), {
        class: "redirect",
        message: `a redirect to ${plain.url}/hook, from https to http (status 307)`
      })
      assert.strictEqual(plain.requests.length, 0)
      secure.answer(({ path }) =>
        path === "/" ? { status: 307, headers: { location: "/2" } } : {}
      )
      assert.strictEqual((yield* attempt(http, post(secure.url))).status, 200)
    })
  )

  it.live.each([
    [undefined, "a redirect without a location (status 307)"],
    ["http://[", "a redirect whose location is no URL (status 307)"],
    ["ftp://files.example.test/", "a redirect to ftp: instead of http or https (status 307)"],
    ["file:///etc/passwd", "a redirect to file: instead of http or https (status 307)"],
    [
      "http://user:pass@127.0.0.1:1/x",
      "a redirect to http://127.0.0.1:1/x with credentials (status 307)"
    ]
  ])("to %s is refused", ([location, message]) =>
    Effect.gen(function* () {
      const to = yield* receiver({
        answer: { status: 307, headers: location === undefined ? {} : { location } }
      })
      const result = yield* attempt(yield* client(), post(to.url))
      assert.deepStrictEqual(errorOf(result), { class: "redirect", message })
      assert.strictEqual(result.status, 307)
    })
  )

  it.live("with a body without end is followed all the same", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const endless = yield* tcpServer((socket) =>
        socket.once("data", () => {
          socket.write(`HTTP/1.1 307 Go\r\nlocation: ${to.url}\r\n\r\n`)
          const more = () => {
            if (!socket.destroyed) socket.write(Buffer.alloc(16_384), () => setImmediate(more))
          }
          more()
        })
      )
      const result = yield* attempt(yield* client(), post(`http://${endless.host}`))
      assert.strictEqual(result.status, 200)
      yield* endless.quiet
    })
  )
})
