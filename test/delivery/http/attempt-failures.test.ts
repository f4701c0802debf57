import { setDefaultCACertificates } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { NameResolver } from "../../../src/delivery/http/dns.ts"
import { nameServer } from "../../kit/name-server.ts"
import { receiver, selfSigned, tcpServer } from "../../kit/receiver.ts"
import { answered, attempt, client, errorOf, post } from "./attempting.ts"

describe("no answer", () => {
  it.live("is what a hint of one is, when nothing comes after it", () =>
    Effect.gen(function* () {
      const to = yield* tcpServer(answered("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"))
      const result = yield* attempt(yield* client(), post(`http://${to.host}`, { timeoutMs: 60 }))
      assert.strictEqual(errorOf(result).message, "no answer within 60 ms")
      assert.isUndefined(result.status)
    })
  )

  it.live("because nobody listens is a refused connection", () =>
    Effect.gen(function* () {
      const to = yield* Effect.scoped(receiver())
      const result = yield* attempt(yield* client(), post(to.url))
      assert.deepStrictEqual(errorOf(result), {
        class: "refused",
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
        refuses: (ip) => (ip.startsWith("127.") ? undefined : "address"),
        resolve: (_hostname, _tenant, done) =>
          done([
            { address: "127.0.0.1", family: 4 },
            { address: "127.0.0.2", family: 4 }
          ])
      })
      assert.deepStrictEqual(
        errorOf(yield* attempt(http, post(`http://two.example.test:${port}`))),
        {
          class: "refused",
          message: `connect ECONNREFUSED 127.0.0.1:${port}; connect ECONNREFUSED 127.0.0.2:${port}`
        }
      )
    })
  )

  it.live("because the connection is reset is told so, and is not sent twice", () =>
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
        class: "reset",
        message: "the receiver reset the connection before an answer"
      })
      assert.deepStrictEqual([requests, to.connections()], [1, 1])
    })
  )

  it.live("because the receiver hangs up is a reset connection", () =>
    Effect.gen(function* () {
      const to = yield* tcpServer((socket) => socket.once("data", () => socket.end()))
      const result = yield* attempt(yield* client(), post(`http://${to.host}`))
      assert.deepStrictEqual(errorOf(result), {
        class: "reset",
        message: "the receiver closed the connection before an answer"
      })
      assert.isUndefined(result.status)
    })
  )

  it.live.each([
    ["its head", "HTTP/1.1 200 OK\r\ncontent-le"],
    ["its length is reached", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"],
    ["its last chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"]
  ] as const)("that ends before %s is a reset connection", ([, raw]) =>
    Effect.gen(function* () {
      const to = yield* tcpServer((socket) => socket.once("data", () => socket.end(raw)))
      const error = errorOf(yield* attempt(yield* client(), post(`http://${to.host}`)))
      assert.strictEqual(error.class, "reset")
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
    ["100 Continue", "HTTP/1.1 100 Continue\r\n\r\n"],
    ["a status below 100", "HTTP/1.1 099 Low\r\ncontent-length: 0\r\n\r\n"],
    ["a status of four digits", "HTTP/1.1 2000 Long\r\ncontent-length: 0\r\n\r\n"],
    ["a status of 0", "HTTP/1.1 000 None\r\ncontent-length: 0\r\n\r\n"]
  ] as const)("but %s is a protocol error", ([, raw]) =>
    Effect.gen(function* () {
      const to = yield* tcpServer(answered(raw))
      const error = errorOf(yield* attempt(yield* client(), post(`http://${to.host}`)))
      assert.strictEqual(error.class, "protocol", error.message)
      assert.notMatch(error.message, /assert|expression|statusCode|===|>=/)
      yield* to.quiet
    })
  )

  it.live("because the name does not resolve is a dns error", () =>
    Effect.gen(function* () {
      const { server } = yield* nameServer(() => "NXDOMAIN")
      const { resolve } = new NameResolver({ servers: [server] })
      const http = yield* client({ resolve })
      assert.deepStrictEqual(errorOf(yield* attempt(http, post("http://gone.example.test/"))), {
        class: "dns",
        message: "the name gone.example.test does not exist"
      })
    })
  )

  it.live("because nobody trusts the certificate is a certificate error", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ certificate: selfSigned("IP:127.0.0.1") })
      assert.deepStrictEqual(errorOf(yield* attempt(yield* client(), post(to.url))), {
        class: "certificate",
        message: "self-signed certificate"
      })
      assert.strictEqual(to.requests.length, 0)
    })
  )

  it.live("because the certificate is another host's is a certificate error", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("DNS:other.example.test")
      setDefaultCACertificates([certificate.cert])
      const to = yield* receiver({ certificate })
      const error = errorOf(yield* attempt(yield* client(), post(to.url)))
      assert.strictEqual(error.class, "certificate")
      assert.match(error.message, /does not match certificate's altnames/)
    })
  )

  it.live("because the other side speaks no TLS is a handshake error", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const error = errorOf(yield* attempt(yield* client(), post(`https://${to.host}`)))
      assert.strictEqual(error.class, "handshake")
      assert.match(error.message, /^TLS: /)
    })
  )

  it.live("because no version of TLS is spoken by both is a handshake error", () =>
    Effect.gen(function* () {
      const to = yield* receiver({
        certificate: {
          ...selfSigned("IP:127.0.0.1"),
          maxVersion: "TLSv1.1",
          ciphers: "ALL:@SECLEVEL=0"
        }
      })
      const error = errorOf(yield* attempt(yield* client(), post(to.url)))
      assert.strictEqual(error.class, "handshake", error.message)
    })
  )

  it.live("because no route leads there is an unreachable address", () =>
    Effect.gen(function* () {
      const http = yield* client({ refuses: () => undefined })
      // The kernel refuses to route class E.
      const error = errorOf(yield* attempt(http, post("http://255.255.255.255/")))
      assert.strictEqual(error.class, "unreachable", error.message)
      assert.notInclude(error.message, "Local")
    })
  )

  it.live("is told by the addresses that there is a route to", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(receiver())
      const http = yield* client({
        refuses: () => undefined,
        resolve: (_hostname, _tenant, done) =>
          done([
            { address: "255.255.255.255", family: 4 },
            { address: "127.0.0.1", family: 4 }
          ])
      })
      const error = errorOf(yield* attempt(http, post(`http://two.example.test:${port}`)))
      assert.strictEqual(error.class, "refused", error.message)
    })
  )

  it.live("because no connection comes about is a connect time-out, of each request its own", () =>
    Effect.gen(function* () {
      const silent = yield* tcpServer(() => {})
      const http = yield* client()
      const url = `https://${silent.host}`
      const tell = (connectTimeoutMs: number) =>
        Effect.map(attempt(http, post(url, { connectTimeoutMs, timeoutMs: 2_500 })), errorOf)
      const [short, long] = yield* Effect.all([tell(50), tell(5_000)], { concurrency: 2 })
      assert.strictEqual(short.class, "connect-timeout")
      assert.match(short.message, /^no connection within the time-out .*50ms/)
      assert.deepStrictEqual(long, { class: "timeout", message: "no connection within 2.5 s" })
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
