import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { watch } from "../machine.ts"
import { storeHistory } from "../made-up-history.ts"
import { runPetrelCommand } from "../processes.ts"
import { startBroker, startEmptyBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const BackedUp = Schema.fromJsonString(Schema.Struct({ bytes: Schema.Number }))
const Restored = Schema.fromJsonString(Schema.Struct({ messages: Schema.Number }))
const Audited = Schema.fromJsonString(
  Schema.Struct({ verdict: Schema.String, facts: Schema.Struct({ read: Schema.Number }) })
)

const seconds = { unit: "s", digits: 1, panel: "seconds" }
const mib = 1_024 * 1_024

/** Backs a generated history up, restores it to an empty broker, and audits both. */
export const backup: Scenario = {
  name: "backup",
  measures:
    "How long a backup and a restore take, and whether the audit says the same before and after.",
  limit: "There is none: the broker makes and takes the copies.",
  onlyNamed: true,
  figures: {
    backup: { title: "backup", ...seconds },
    check: { title: "restore --dry-run", ...seconds },
    restore: { title: "restore", ...seconds },
    audit: { title: "audit before", ...seconds },
    again: { title: "audit after", ...seconds },
    size: { title: "size of the backup", unit: "MiB", digits: 0 },
    peak: { title: "memory of the backup at most", unit: "MiB", digits: 0 },
    restorePeak: { title: "memory of the restore at most", unit: "MiB", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = 1 }, row) {
    const events = quick ? 20_000 : 1_000_000
    let messages = 0
    for (let round = 1; round <= rounds; round++)
      yield* Effect.gen(function* () {
        const folder = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-bench-backup-"))),
          (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
        )
        const { facts, before, after } = yield* brokers(events)
        const command = (broker: string, ...args: ReadonlyArray<string>) =>
          runPetrelCommand([...args, "--json", "--nats", broker])
        const audit = Effect.fnUntraced(function* (broker: string) {
          const { printed, seconds } = yield* command(broker, "audit")
          const { facts: of, verdict } = Schema.decodeUnknownSync(Audited)(printed)
          if (verdict !== "clean")
            return yield* Effect.fail(new Error(`an audit ended as ${verdict}`))
          if (of.read < facts)
            return yield* Effect.fail(new Error(`an audit read ${of.read} of ${facts} facts`))
          return seconds
        })
        const audited = yield* audit(before.url)
        const watched = watch({ broker: [before.pid, after.pid] })
        const copied = yield* command(before.url, "backup", folder)
        const { bytes } = Schema.decodeUnknownSync(BackedUp)(copied.printed)
        const checked = yield* command(after.url, "restore", folder, "--dry-run")
        const restored = yield* command(after.url, "restore", folder)
        const { use } = watched()
        messages = Schema.decodeUnknownSync(Restored)(restored.printed).messages
        const again = yield* audit(after.url)
        row({
          of: `${events.toLocaleString("en")} events`,
          round,
          figures: {
            ...{ backup: copied.seconds, check: checked.seconds, restore: restored.seconds },
            ...{ audit: audited, again, size: bytes / mib },
            ...{ peak: copied.peak, restorePeak: restored.peak }
          },
          machine: { petrel: use }
        })
      }).pipe(Effect.scoped)
    return { settings: { rounds, messages, "bytes of an event": 64 } }
  })
}

/** Starts a broker that has a history, and an empty one. */
const brokers = Effect.fnUntraced(function* (events: number) {
  const before = yield* startBroker()
  const after = yield* startEmptyBroker()
  const { facts } = yield* Effect.provide(
    storeHistory({ events, fanOut: 1 }),
    connectTo({ url: before.url })
  )
  return { before, after, facts }
})
