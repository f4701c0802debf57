import { createSecureContext } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { checkConnection } from "../../../src/delivery/http/connection-check.ts"
import type { AgentOptions } from "../../../src/delivery/http/connector.ts"
import { NameResolver } from "../../../src/delivery/http/dns.ts"
import { nameServer } from "../../kit/name-server.ts"
import { receiver, selfSigned, tcpServer } from "../../kit/receiver.ts"

const allowAll: AgentOptions = { refuses: () => undefined }

const check = (url: string, options: Partial<AgentOptions> = {}, timeoutMs = 5_000) =>
  checkConnection({ ...allowAll, ...options }, { tenant: "acme", url, timeoutMs })

describe("a check of a connection", () => {
  it.live("connects to an http receiver, and sends it no request", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const found = yield* check(`http://127.0.0.1:${to.port}/hook?token=x`)
      assert.deepInclude(found, { host: "127.0.0.1", port: to.port, isSecure: false, refused: 0 })
      assert.isUndefined(found.lookupMs)
      assert.deepStrictEqual(
        found.addresses.map(({ address, error, tls }) => ({ address, error, tls })),
        [{ address: "127.0.0.1", error: undefined, tls: undefined }]
      )
      assert.deepStrictEqual([to.requests.length, to.connections()], [0, 1])
    })
  )

  it.live("shows a certificate that nobody trusts, with its days", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ certificate: selfSigned("IP:127.0.0.1") })
      const [at] = (yield* check(to.url)).addresses
      assert.strictEqual(at?.tls?.distrust, "DEPTH_ZERO_SELF_SIGNED_CERT")
      assert.match(at?.tls?.protocol ?? "", /^TLSv1\.[23]$/)
      const [own] = at?.tls?.chain ?? []
      assert.isAbove(own?.validUntil ?? 0, own?.validFrom ?? Number.POSITIVE_INFINITY)
      assert.strictEqual(own?.issuer, own?.subject)
      assert.strictEqual(to.requests.length, 0)
    })
  )

  it.live("trusts what requests trust", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("IP:127.0.0.1")
      const to = yield* receiver({ certificate })
      const secureContext = createSecureContext({ ca: certificate.cert })
      const [at] = (yield* check(to.url, { secureContext })).addresses
      assert.isUndefined(at?.tls?.distrust)
      assert.isDefined(at?.tls)
    })
  )

  it.live("says that a certificate is of another host", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("DNS:other.example.test")
      const to = yield* receiver({ certificate })
      const secureContext = createSecureContext({ ca: certificate.cert })
      const [at] = (yield* check(to.url, { secureContext })).addresses
      assert.strictEqual(at?.tls?.distrust, "ERR_TLS_CERT_ALTNAME_INVALID")
    })
  )

  it.live("says that nothing listens", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(tcpServer(() => undefined))
      const [at] = (yield* check(`http://127.0.0.1:${port}`)).addresses
      assert.strictEqual(at?.error?.class, "refused")
    })
  )

  it.live("ends where a handshake is never answered", () =>
    Effect.gen(function* () {
      const { port } = yield* tcpServer(() => undefined)
      const [at] = (yield* check(`https://127.0.0.1:${port}`, {}, 200)).addresses
      assert.strictEqual(at?.error?.class, "connect-timeout")
    })
  )

  it.live("says that http is spoken where https is expected", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const [at] = (yield* check(`https://127.0.0.1:${to.port}`)).addresses
      assert.strictEqual(at?.error?.class, "handshake")
    })
  )

  it.live("says that a name does not resolve", () =>
    Effect.gen(function* () {
      const { server } = yield* nameServer(() => ({ a: [] }))
      const { resolve } = new NameResolver({ servers: [server] })
      const found = yield* check("https://gone.example.test/", { resolve })
      assert.strictEqual(found.error?.class, "dns")
      assert.deepStrictEqual(found.addresses, [])
      assert.isDefined(found.lookupMs)
    })
  )

  it.live("connects to no address that is not allowed, and names none", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const { server } = yield* nameServer(() => ({ a: ["127.0.0.1"] }))
      const { resolve } = new NameResolver({ servers: [server] })
      const url = `http://inner.example.test:${to.port}/`
      const found = yield* check(url, { resolve, refuses: () => "address" })
      assert.strictEqual(found.error?.class, "address")
      assert.strictEqual(found.refused, 1)
      assert.notInclude(JSON.stringify(found), "127.0.0.1")
      assert.strictEqual(to.connections(), 0)
    })
  )
})
