import { Effect, Schema } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { makeNames } from "../../src/domain/names.ts"
import { watch } from "../machine.ts"
import { type MadeUp, storeHistory } from "../made-up-history.ts"
import { runPetrelCommand, startReader } from "../processes.ts"
import { startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const casesOf = (quick: boolean): ReadonlyArray<MadeUp> => {
  const factor = quick ? 1 / 50 : 1
  return [
    { events: 1_000_000 * factor, fanOut: 1 },
    { events: 400_000 * factor, fanOut: 10 }
  ]
}

const Said = Schema.fromJsonString(
  Schema.Struct({ verdict: Schema.String, facts: Schema.Struct({ read: Schema.Number }) })
)
const readSaid = Schema.decodeUnknownSync(Said)
const rate = { unit: "/s", digits: 0, panel: "facts a second" }
const seconds = { unit: "s", digits: 1 }

/** Audits a generated history from beginning to end. */
export const audit: Scenario = {
  name: "audit",
  measures: "How fast `petrel audit` is, and what it takes.",
  limit: "The limit is a program that reads the same events and facts and does nothing with them.",
  sides: { petrel: "audit", limit: "reading" },
  onlyNamed: true,
  figures: {
    petrel: { title: "audit", ...rate },
    limit: { title: "reading", ...rate, side: "limit" },
    ratio: { title: "ratio", unit: "", digits: 3 },
    seconds: { title: "audit takes", ...seconds, panel: "seconds" },
    readSeconds: { title: "reading takes", ...seconds, panel: "seconds", side: "limit" },
    cpu: { title: "audit CPU", ...seconds },
    peak: { title: "memory at most", unit: "MiB", digits: 0, panel: "memory at most, MiB" }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 1 : 3 }, row) {
    const names = makeNames()
    for (const it of casesOf(quick))
      yield* Effect.gen(function* () {
        const broker = yield* startBroker()
        const { facts } = yield* Effect.provide(storeHistory(it), connectTo(broker))
        const reader = yield* startReader(broker.url)
        for (let round = 1; round <= rounds; round++) {
          const watchedLimit = watch({ limit: [reader.pid], broker: [broker.pid] })
          const { ms } = yield* Effect.promise(() =>
            reader.read({ streams: [names.events, names.history] })
          )
          const limit = watchedLimit().use
          const watchedPetrel = watch({ broker: [broker.pid] })
          const audit = yield* runPetrelCommand(["audit", "--json", "--nats", broker.url])
          const { use } = watchedPetrel()
          const said = readSaid(audit.printed)
          if (said.verdict !== "clean")
            return yield* Effect.fail(new Error(`the audit ended as ${said.verdict}`))
          if (said.facts.read !== facts)
            return yield* Effect.fail(
              new Error(`the audit read ${said.facts.read} of ${facts} facts`)
            )
          const share = audit.cpu / 1e6 / use.seconds
          row({
            of: `${it.events.toLocaleString("en")} events to ${it.fanOut}, ${facts.toLocaleString("en")} facts`,
            round,
            figures: {
              petrel: facts / audit.seconds,
              limit: facts / (ms / 1000),
              ratio: ms / 1000 / audit.seconds,
              ...{ seconds: audit.seconds, readSeconds: ms / 1000 },
              ...{ cpu: audit.cpu / 1e6, peak: audit.peak }
            },
            machine: {
              petrel: {
                ...use,
                processes: { audit: share, ...use.processes },
                others: Math.max(0, use.others - share)
              },
              limit
            }
          })
        }
      }).pipe(Effect.scoped)
    return { settings: { rounds, "bytes of an event": 64, "share that fails once": 0.05 } }
  })
}
