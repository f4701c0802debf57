import { Effect } from "effect"
import { addTyped, endpointCap, prepare, typeSubjects } from "../ground.ts"
import { startReceiver } from "../processes.ts"
import { race, raceFigures } from "../race.ts"
import type { Scenario } from "../scenario.ts"

const endpoints = 10
const KiB = 1024
const sizes = [
  { of: "1 KB", bytes: KiB, events: 30_000, quick: 5_000 },
  { of: "64 KB", bytes: 64 * KiB, events: 4_000, quick: 600 },
  { of: "512 KB", bytes: 512 * KiB, events: 600, quick: 100 }
]

/** Events of three sizes, each for one of 10 endpoints that answer at once. */
export const bodies: Scenario = {
  name: "bodies",
  measures: "Deliveries per second of one worker, by the size of what is delivered.",
  limit: "The limit is a loop that signs and POSTs bodies of that size and does nothing else.",
  figures: {
    ...raceFigures,
    bytes: { title: "petrel, bodies", unit: "MB/s", digits: 1, panel: "bodies, MB a second" },
    limitBytes: {
      ...{ title: "limit, bodies", unit: "MB/s", digits: 1 },
      ...{ panel: "bodies, MB a second", side: "limit" }
    }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 1 : 4 }, row) {
    const receiver = yield* startReceiver()
    const ground = yield* prepare(
      receiver,
      addTyped(endpoints, (number) => `${receiver.url}/${number}`)
    )
    for (const { bytes, events, of, quick: few } of sizes)
      yield* race(
        ground,
        {
          ...{ of, rounds, fanOut: 1 },
          publishing: {
            ...{ subject: typeSubjects, subjects: endpoints },
            ...{ count: quick ? few : events, bytes }
          },
          posting: { endpoints, atOnce: endpoints * endpointCap },
          more: (petrel, limit) => ({
            bytes: (petrel.perSecond * bytes) / 1e6,
            limitBytes: (limit.perSecond * bytes) / 1e6
          })
        },
        row
      )
    const events = sizes.map((size) => `${size.of}: ${quick ? size.quick : size.events}`)
    return { settings: { "events a round": events.join("; "), endpoints, rounds, workers: 1 } }
  })
}
