import type { LookupAddress } from "node:dns"
import { setDefaultCACertificates } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Agent } from "undici"
import { agent } from "../../../src/delivery/http/connector.ts"
import type { Resolve } from "../../../src/delivery/http/dns.ts"
import { receiver, selfSigned, tcpServer } from "../../kit/receiver.ts"

const onlyLocal = (ip: string) => (ip === "127.0.0.1" ? undefined : "address")

/** The connector alone, under undici's own `request`. */
const get = (http: Agent, url: string) =>
  Effect.promise(async () => {
    const { origin, pathname: path } = new URL(url)
    try {
      const answer = await http.request({ origin, path, method: "GET" })
      await answer.body.dump()
      return `${answer.statusCode}`
    } catch (error) {
      return error instanceof Error && "code" in error ? `${error.code}` : `${error}`
    }
  })

const resolvesTo =
  (...addresses: ReadonlyArray<LookupAddress>): Resolve =>
  (_hostname, _tenant, done) =>
    done(addresses)

const ipv4 = (address: string): LookupAddress => ({ address, family: 4 })

describe("an address that is not allowed", () => {
  it.live.each([
    "127.0.0.2",
    "127.2",
    "0x7f000002",
    "0177.0.0.2",
    "2130706434",
    "127.0.0.2.",
    "[::1]",
    "[::ffff:127.0.0.2]",
    "[::ffff:7f00:2]"
  ])("is refused when the URL spells it %s", (host) =>
    Effect.gen(function* () {
      const hidden = yield* receiver({ host: "127.0.0.2" })
      const asked: Array<string> = []
      const http = yield* agent({
        refuses: (ip) => {
          asked.push(ip)
          return onlyLocal(ip)
        }
      })
      assert.strictEqual(yield* get(http, `http://${host}:${hidden.port}/`), "PETREL_ADDRESS")
      assert.strictEqual(yield* get(http, `https://${host}:${hidden.port}/`), "PETREL_ADDRESS")
      assert.strictEqual(hidden.connections(), 0)
      assert.strictEqual(new Set(asked).size, 1)
    })
  )

  it.live("is refused when a name resolves to it", () =>
    Effect.gen(function* () {
      const hidden = yield* receiver({ host: "127.0.0.2" })
      const http = yield* agent({ refuses: onlyLocal, resolve: resolvesTo(ipv4("127.0.0.2")) })
      const url = `http://intern.example.test:${hidden.port}/`
      assert.strictEqual(yield* get(http, url), "PETREL_ADDRESS")
      assert.strictEqual(hidden.connections(), 0)
    })
  )

  it.live("is passed over when a name resolves to an allowed one too", () =>
    Effect.gen(function* () {
      const open = yield* receiver()
      const http = yield* agent({
        refuses: onlyLocal,
        resolve: resolvesTo({ address: "::1", family: 6 }, ipv4("127.0.0.2"), ipv4("127.0.0.1"))
      })
      assert.strictEqual(yield* get(http, `http://mixed.example.test:${open.port}/`), "200")
    })
  )

  it.live("is refused when a name moves to it between two requests", () =>
    Effect.gen(function* () {
      const open = yield* receiver({ answer: { headers: { connection: "close" } } })
      const answers = ["127.0.0.1", "127.0.0.2"]
      const http = yield* agent({
        refuses: onlyLocal,
        resolve: (_hostname, _tenant, done) => done([ipv4(answers.shift() ?? "127.0.0.3")])
      })
      const url = `http://rebound.example.test:${open.port}/`
      assert.strictEqual(yield* get(http, url), "200")
      assert.strictEqual(yield* get(http, url), "PETREL_ADDRESS")
      assert.strictEqual(open.requests.length, 1)
    })
  )

  it.live(
    "is refused once connected to, whatever was thought of it before, and gets not a byte",
    () =>
      Effect.gen(function* () {
        let bytes = 0
        const to = yield* tcpServer((socket) =>
          socket.on("data", (chunk) => {
            bytes += chunk.length
          })
        )
        let checks = 0
        const http = yield* agent({
          refuses: () => (++checks === 1 ? undefined : "address"),
          resolve: resolvesTo(ipv4("127.0.0.1"))
        })
        const url = `http://rebound.example.test:${to.port}/`
        assert.strictEqual(yield* get(http, url), "PETREL_ADDRESS")
        yield* to.quiet
        assert.deepStrictEqual([checks, to.connections(), bytes], [2, 1, 0])
      })
  )

  it.live("is refused after the handshake too, and gets no request", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("DNS:rebound.example.test")
      setDefaultCACertificates([certificate.cert])
      const to = yield* receiver({ certificate })
      const verdicts = [true, false, true, true]
      const http = yield* agent({
        refuses: () => (verdicts.shift() === true ? undefined : "address"),
        resolve: resolvesTo(ipv4("127.0.0.1"))
      })
      const url = `https://rebound.example.test:${to.port}/`
      assert.strictEqual(yield* get(http, url), "PETREL_ADDRESS")
      yield* to.quiet
      assert.strictEqual(to.requests.length, 0)
      assert.strictEqual(yield* get(http, url), "200")
    })
  )
})

describe("names", () => {
  it.live("are looked up by the system where nothing else is said", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const http = yield* agent({ refuses: onlyLocal })
      assert.strictEqual(yield* get(http, `http://localhost:${to.port}/`), "200")
    })
  )

  it.live("without any address do not resolve", () =>
    Effect.gen(function* () {
      const http = yield* agent({ refuses: () => undefined, resolve: resolvesTo() })
      assert.strictEqual(yield* get(http, "http://empty.example.test/"), "ENODATA")
    })
  )
})

describe("the agent", () => {
  it.live("closes its idle connections when its scope ends", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const scope = yield* Scope.make()
      const http = yield* Scope.provide(agent({ refuses: onlyLocal }), scope)
      assert.strictEqual(yield* get(http, to.url), "200")
      yield* Scope.close(scope, Exit.void)
      yield* to.quiet
    })
  )
})
