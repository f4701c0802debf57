import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { nth } from "../../kit/engine.ts"
import { addressFor, startTenantServer } from "../../kit/tenant-accounts.ts"
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
})
