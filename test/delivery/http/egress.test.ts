import { execFile } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { networkInterfaces, tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { IpNetwork } from "effect/net"
import { NameResolver } from "../../../src/delivery/http/dns.ts"
import { makeConnections } from "../../../src/delivery/http/egress.ts"
import { ownAddresses } from "../../../src/delivery/http/this-host.ts"
import type { Reach } from "../../../src/policy/address.ts"
import { makeLog } from "../../kit/log.ts"
import { nameServer } from "../../kit/name-server.ts"
import { receiver, selfSigned } from "../../kit/receiver.ts"
import { attempt, client, errorOf, post } from "./attempting.ts"

const nothing: Reach = { networks: [], ports: [] }
const loopback: Reach = { ...nothing, networks: [IpNetwork.fromStringUnsafe("127.0.0.0/8")] }

describe("what only one tenant may reach", () => {
  it.live("nobody else does, not even over the connection that it has made", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const { agentOf } = yield* makeConnections({
        everyone: nothing,
        tenants: new Map([["acme", loopback]])
      })
      const as = (tenant: string) => attempt(agentOf(tenant), post(to.url, { tenant }))
      assert.strictEqual((yield* as("acme")).status, 200)
      assert.strictEqual(errorOf(yield* as("other")).class, "address")
      assert.strictEqual((yield* as("acme")).status, 200)
      assert.deepStrictEqual([to.requests.length, to.connections()], [2, 1])
    })
  )
})

describe("a refusal", () => {
  it.live("names the address in the log, and not to the tenant", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const { agentOf } = yield* Effect.provide(
        makeConnections({ everyone: nothing, tenants: new Map() }),
        log.layer
      )
      const request = post("http://localhost:8080/hook")
      for (let n = 0; n < 2; n++)
        assert.deepStrictEqual(errorOf(yield* attempt(agentOf("acme"), request)), {
          class: "address",
          message: "localhost resolves to an address that is not allowed"
        })
      assert.deepStrictEqual(
        log.lines.map(({ text }) => text.replace("::1", "127.0.0.1")),
        ["nothing is sent to localhost: 127.0.0.1 port 8080 is not allowed"]
      )
    })
  )
})

describe("an authority for receivers", () => {
  it.live("vouches for those it has signed, beside the usual ones", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("IP:127.0.0.1")
      const to = yield* receiver({ certificate })
      const through = (receiverCa: string | undefined) =>
        Effect.flatMap(
          makeConnections({ everyone: loopback, tenants: new Map(), receiverCa }),
          ({ agentOf }) => attempt(agentOf("acme"), post(to.url))
        )
      assert.strictEqual(errorOf(yield* through(undefined)).class, "certificate")
      assert.strictEqual((yield* through(certificate.cert)).status, 200)
    })
  )
})

describe("an authority for the broker", () => {
  it.live("does not vouch for receivers, though Node trusts it", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("IP:127.0.0.1")
      const to = yield* receiver({ certificate })
      const extra = join(mkdtempSync(join(tmpdir(), "petrel-extra-")), "ca.pem")
      writeFileSync(extra, certificate.cert)
      const program = join(import.meta.dirname, "../../kit/requesting.ts")
      const ended = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, [program, to.url], {
          env: { ...process.env, NODE_EXTRA_CA_CERTS: extra }
        })
      )
      assert.deepStrictEqual(JSON.parse(ended.stdout), { node: 200, worker: "certificate" })
    })
  )
})

describe("names", () => {
  it.live("are looked up in the line of the tenant whose request it is", () =>
    Effect.gen(function* () {
      const to = yield* receiver()
      const { asked, heard, server } = yield* nameServer((name) =>
        name.endsWith(".silent.test") ? "silent" : { a: ["127.0.0.1"] }
      )
      const http = yield* client({ resolve: new NameResolver({ servers: [server] }).resolve })
      const silent = yield* Effect.forEach(
        Array.from({ length: 100 }, (_, n) => `http://h${n}.silent.test/`),
        (url) => Effect.forkChild(attempt(http, post(url, { tenant: "noisy" })))
      )
      yield* heard(128)
      const url = `http://quick.example.test:${to.port}`
      assert.strictEqual((yield* attempt(http, post(url))).status, 200)
      assert.strictEqual(new Set(asked).size, 64 + 1)
      yield* Fiber.interruptAll(silent)
    })
  )

  it.live("whose answer is kept are asked about at the guard again", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { headers: { connection: "close" } } })
      const { asked, server } = yield* nameServer(() => ({ a: ["127.0.0.1"] }))
      let isAllowed = true
      const http = yield* client({
        resolve: new NameResolver({ servers: [server] }).resolve,
        refuses: () => (isAllowed ? undefined : "address")
      })
      const request = post(`http://kept.example.test:${to.port}`)
      assert.strictEqual((yield* attempt(http, request)).status, 200)
      isAllowed = false
      assert.strictEqual(errorOf(yield* attempt(http, request)).class, "address")
      assert.deepStrictEqual([asked.length, to.connections()], [2, 1])
    })
  )
})

describe("this host's own addresses", () => {
  it("are those of its interfaces", () => {
    const listed = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    assert.isAbove(listed.length, 0)
    for (const { address } of listed) assert.isTrue(ownAddresses().has(address), address)
  })
})
