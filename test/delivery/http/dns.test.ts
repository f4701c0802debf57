import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  NameResolver,
  type NameResolverOptions,
  NameUnresolved
} from "../../../src/delivery/http/dns.ts"
import { nameServer } from "../../kit/name-server.ts"

const noHosts = { hostsPath: "/nowhere/hosts" }

const asking = (options: NameResolverOptions) => {
  const names = new NameResolver({ ...noHosts, ...options })
  /** The addresses, or the sentence that says why there are none. */
  return (name: string, tenant = "acme") =>
    Effect.callback<ReadonlyArray<string> | string>((resume) => {
      names.resolve(name, tenant, (found) =>
        resume(
          Effect.succeed(
            found instanceof NameUnresolved ? found.message : found.map(({ address }) => address)
          )
        )
      )
    })
}

const all = <A>(effects: ReadonlyArray<Effect.Effect<A>>) =>
  Effect.all(effects, { concurrency: "unbounded" })

const many = (count: number) => Array.from({ length: count }, (_, n) => `h${n}.silent.test`)

const addresses = { a: ["192.0.2.7"], aaaa: ["2001:db8:0:0:0:0:0:7"] }

describe("look-ups", () => {
  it.live("give the addresses of both families, and are the same for names in any form", () =>
    Effect.gen(function* () {
      const { server } = yield* nameServer(() => addresses)
      const ask = asking({ servers: [server] })
      for (const name of ["two.example.test", "TWO.example.test.", "two.example.test."])
        assert.sameMembers([...(yield* ask(name))], ["192.0.2.7", "2001:db8::7"])
    })
  )

  it.live.each([
    ["NXDOMAIN", "the name x.example.test does not exist"],
    ["SERVFAIL", "the name server could not answer for x.example.test (SERVFAIL)"],
    [{}, "the name x.example.test has no address"],
    ["silent", "no name server answered for x.example.test within 300 ms"]
  ] as const)("that get %s say so", ([answer, sentence]) =>
    Effect.gen(function* () {
      const { server } = yield* nameServer(() => answer)
      const ask = asking({ servers: [server], timeoutMs: 300 })
      assert.strictEqual(yield* ask("x.example.test"), sentence)
    })
  )

  it.live("wait for the other family where one has nothing", () =>
    Effect.gen(function* () {
      const { server } = yield* nameServer((_, family) =>
        family === 4 ? {} : { aaaa: ["2001:db8:0:0:0:0:0:7"] }
      )
      assert.deepStrictEqual(yield* asking({ servers: [server] })("x.example.test"), [
        "2001:db8::7"
      ])
    })
  )

  it.live("do without a family that the name server is silent about", () =>
    Effect.gen(function* () {
      const { server } = yield* nameServer((_, family) => (family === 4 ? addresses : "silent"))
      assert.deepStrictEqual(yield* asking({ servers: [server] })("x.example.test"), ["192.0.2.7"])
    })
  )

  it.live("of the same name share an answer, which is kept as long as it says", () =>
    Effect.gen(function* () {
      const { asked, server } = yield* nameServer((name) => ({
        a: ["192.0.2.7"],
        ttl: name.startsWith("kept") ? 60 : 0
      }))
      const ask = asking({ servers: [server] })
      const names = ["kept.test", "brief.test"]
      yield* all(names.flatMap((name) => Array.from({ length: 10 }, (_, n) => ask(name, `t${n}`))))
      assert.strictEqual(asked.length, 4)
      for (const name of names) yield* ask(name)
      assert.deepStrictEqual(asked.slice(4), ["brief.test", "brief.test"])
    })
  )

  it.live("that fail are not repeated at once, but soon", () =>
    Effect.gen(function* () {
      let answer: "NXDOMAIN" | typeof addresses = "NXDOMAIN"
      const { asked, server } = yield* nameServer(() => answer)
      const ask = asking({ servers: [server] })
      for (let n = 0; n < 3; n++) yield* ask("late.example.test")
      assert.strictEqual(asked.length, 2)
      answer = addresses
      yield* ask("late.example.test").pipe(
        Effect.delay("50 millis"),
        Effect.repeat({ until: (found) => typeof found !== "string" })
      )
    })
  )
})

describe("names in the hosts file", () => {
  const hosts = () => join(mkdtempSync(join(tmpdir(), "petrel-hosts-")), "hosts")

  it.live("are not asked of name servers, and change with the file", () =>
    Effect.gen(function* () {
      const { asked, server } = yield* nameServer(() => "NXDOMAIN")
      const hostsPath = hosts()
      writeFileSync(hostsPath, "# the house\n10.0.0.7\tintern Alias.example.test # both\nbad x\n")
      const ask = asking({ servers: [server], hostsPath })
      for (const name of ["intern", "alias.example.test"])
        assert.deepStrictEqual(yield* ask(name), ["10.0.0.7"])
      writeFileSync(hostsPath, "10.0.0.8 intern\n10.0.0.9 intern\n")
      yield* ask("intern").pipe(
        Effect.delay("50 millis"),
        Effect.repeat({ until: (found) => found.includes("10.0.0.9") })
      )
      assert.deepStrictEqual(asked, [])
    })
  )

  it.live("need not name localhost", () =>
    Effect.gen(function* () {
      const { asked, server } = yield* nameServer(() => "NXDOMAIN")
      const ask = asking({ servers: [server] })
      for (const name of ["localhost", "my.localhost"])
        assert.sameMembers([...(yield* ask(name))], ["127.0.0.1", "::1"])
      assert.deepStrictEqual(asked, [])
    })
  )
})

describe("silent name servers", () => {
  it.live("hold up the tenant that asks them, and nobody else", () =>
    Effect.gen(function* () {
      const { asked, heard, server } = yield* nameServer((name) =>
        name.endsWith(".silent.test") ? "silent" : addresses
      )
      const ask = asking({ servers: [server], timeoutMs: 1_500 })
      yield* ask("warm.example.test", "other")
      const times: Array<number> = []
      const noisy = yield* Effect.forkChild(all(many(2_000).map((name) => ask(name, "noisy"))))
      yield* heard(2 + 2 * 64)
      for (let n = 0; n < 20; n++) {
        const began = performance.now()
        assert.isArray(yield* ask(`n${n}.example.test`, "other"))
        times.push(performance.now() - began)
      }
      times.sort((a, b) => a - b)
      // Without a name server that is silent it is less than a ms; the rest is the machine's.
      assert.isBelow(times[10] ?? Number.NaN, 20)
      const begun = new Set(asked.filter((name) => name.endsWith(".silent.test")))
      assert.strictEqual(begun.size, 64)
      const silent = yield* Fiber.join(noisy)
      assert.strictEqual(silent[0], "no name server answered for h0.silent.test within 1.5 s")
      assert.strictEqual(
        silent[1_999],
        "h1999.silent.test was not looked up within 1.5 s: 64 names of tenant noisy wait for silent name servers"
      )
    })
  )

  it.live("do not hold up names of their own tenant that were answered before", () =>
    Effect.gen(function* () {
      const { heard, server } = yield* nameServer((name) =>
        name.endsWith(".silent.test") ? "silent" : { ...addresses, ttl: 0 }
      )
      const ask = asking({ servers: [server] })
      assert.isArray(yield* ask("good.example.test"))
      const silent = yield* Effect.forkChild(all(many(200).map((name) => ask(name))))
      yield* heard(2 + 2 * 64)
      const began = performance.now()
      for (let n = 0; n < 10; n++) assert.isArray(yield* ask("good.example.test"))
      // Behind the silent ones it would be refused after 5 s.
      assert.isBelow(performance.now() - began, 2_500)
      yield* Fiber.interrupt(silent)
    })
  )

  it.live("let the names that wait for their turn go on when they answer again", () =>
    Effect.gen(function* () {
      let isSilent = true
      const { heard, server } = yield* nameServer(() => (isSilent ? "silent" : addresses))
      const ask = asking({ servers: [server] })
      const waiting = yield* Effect.forkChild(all(many(200).map((name) => ask(name))))
      yield* heard(128)
      isSilent = false
      // A name that waits in another tenant's line is nobody else's to wait for.
      assert.isArray(yield* ask("h199.silent.test", "other"))
      for (const found of yield* Fiber.join(waiting)) assert.isArray(found)
    })
  )
})
