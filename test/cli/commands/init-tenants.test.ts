import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../../src/broker/clients.ts"
import { connectTo } from "../../../src/broker/connection.ts"
import { nth } from "../../kit/engine.ts"
import { addressFor, startTenantServer, tenantAccounts } from "../../kit/tenant-accounts.ts"
import { parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const tenantServer = Effect.acquireRelease(
  Effect.promise(() => startTenantServer(["acme", "globex"])),
  (server) => Effect.promise(() => server.stop())
)

describe("petrel init --tenant-streams", () => {
  it.live("converts an installation, adds tenants later, and says what is to be done", () =>
    Effect.gen(function* () {
      const server = yield* tenantServer
      const flags = ["--nats", addressFor(server, "operator")]
      const sizes = ["--event-bytes", "64MiB", "--tenant-bytes", "16MiB"]
      const before = yield* run("init", "--partitions", "1", "--event-bytes", "64MiB", ...flags)
      assert.strictEqual(before.code, 0, before.err.join("\n"))

      const converted = yield* run("init", "--tenant-streams", "acme", ...sizes, ...flags)
      assert.deepStrictEqual(converted.out.slice(0, 3), [
        "created    stream PETREL_EVENTS_acme",
        "created    stream PETREL_OWN_EVENTS",
        "updated    stream PETREL_EVENTS: subjects, duplicate_window, sources"
      ])
      assert.deepStrictEqual(
        [converted, before].map(({ err }) =>
          err.some((line) => line.includes("restart the workers"))
        ),
        [true, false]
      )

      const added = yield* run("init", "--tenant-streams", "globex", ...flags)
      assert.deepStrictEqual(added.out.slice(0, 2), [
        "created    stream PETREL_EVENTS_globex",
        "updated    stream PETREL_EVENTS: sources"
      ])
      assert.notMatch(added.err.join("\n"), /restart the workers/)
      const again = yield* run("init", ...flags)
      assert.match(again.out.join("\n"), /nothing to do/)

      const published = yield* run("publish", "acme", "a", "{}", "--json", ...flags)
      assert.notProperty(parse(nth(published.out, 0)), "seq")

      const [unreachable, names] = yield* Effect.all([
        run("init", "--tenant-streams", "initech", ...flags),
        run("init", "--tenant-streams", "a.b", ...flags)
      ])
      assert.match(unreachable.err.join("\n"), /the account of initech does not answer on/)
      assert.match(names.err.join("\n"), /must be names of tenants, with commas: acme,globex/)
      assert.deepStrictEqual([unreachable.code, names.code], [1, 2])
    })
  )

  it.live("says whose stream was taken out of the sources, and takes it in again", () =>
    Effect.gen(function* () {
      const server = yield* tenantServer
      const url = addressFor(server, "operator")
      const flags = ["--nats", url]
      const init = (...args: ReadonlyArray<string>) => run("init", ...args, ...flags)
      const sizes = ["--event-bytes", "64MiB", "--tenant-bytes", "16MiB"]
      const made = yield* init("--partitions", "1", "--tenant-streams", "acme,globex", ...sizes)
      assert.strictEqual(made.code, 0, made.err.join("\n"))
      yield* Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const { config } = yield* ask("look", () => jsm.streams.info(names.events))
        const sources = (config.sources ?? []).filter(({ name }) => !name.endsWith("_globex"))
        yield* ask("take out", () => jsm.streams.update(names.events, { ...config, sources }))
      }).pipe(Effect.provide(connectTo({ url })))
      const status = () => Effect.map(run("status", ...flags), ({ out }) => out.join("\n"))
      const said = yield* status()
      assert.match(
        said,
        /the stream of globex was taken out of .*`petrel init --tenant-streams globex`/
      )
      assert.notInclude(said, "(sources)")
      const plain = yield* init()
      assert.match(
        plain.err.join("\n"),
        /stream of globex was taken out of .* no longer delivered.*--tenant-streams globex`/
      )
      const back = yield* init("--tenant-streams", "globex")
      assert.include(back.out, "updated    stream PETREL_EVENTS: sources")
      assert.notInclude(yield* status(), "was taken out")
    })
  )

  it.live("changes all but the stream of a tenant whose account is gone", () =>
    Effect.gen(function* () {
      const server = yield* tenantServer
      const flags = ["--nats", addressFor(server, "operator")]
      const init = (...args: ReadonlyArray<string>) => run("init", ...args, ...flags)
      const sizes = ["--event-bytes", "64MiB", "--tenant-bytes", "16MiB"]
      const made = yield* init("--partitions", "1", "--tenant-streams", "acme,globex", ...sizes)
      assert.strictEqual(made.code, 0, made.err.join("\n"))
      const config = yield* Effect.promise(() => tenantAccounts(["acme"]))
      yield* Effect.promise(() => server.restartWith(config))
      const changed = yield* init("--event-age", "8d")
      assert.strictEqual(changed.code, 0, changed.err.join("\n"))
      assert.match(
        changed.err.join("\n"),
        /the stream of globex stays as it is: the account of globex does not answer on .*; then run init again/
      )
      assert.includeMembers(changed.out, [
        "updated    stream PETREL_EVENTS_acme: max_age",
        "updated    stream PETREL_OWN_EVENTS: max_age"
      ])
      const added = yield* init("--tenant-streams", "initech")
      assert.match(added.err.join("\n"), /petrel: the account of initech does not answer on/)
      assert.strictEqual(added.code, 1)
    })
  )
})
