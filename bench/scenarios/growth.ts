import { Effect } from "effect"
import { endpointCap, prepare, untilIdle } from "../ground.ts"
import { memoryOf, startReceiver } from "../processes.ts"
import { race, raceFigures } from "../race.ts"
import { addEndpoints } from "../rig.ts"
import type { Scenario, Settings } from "../scenario.ts"
import { storeWaiting } from "../waiting.ts"

const bytes = 1024
const tenants = 1_000
/** Maximum number of endpoints that get events; each belongs to another tenant. */
const mostBusy = 1_000
/** Paused endpoints with waiting deliveries. */
const paused = 10

interface Case {
  readonly endpoints: number
  readonly waiting: number
}
const casesOf = ({ quick }: Settings): ReadonlyArray<Case> => [
  { endpoints: 10, waiting: 0 },
  { endpoints: 1_000, waiting: 0 },
  { endpoints: quick ? 10_000 : 100_000, waiting: 0 },
  ...(quick ? [10_000] : [100_000, 1_000_000]).map((waiting) => ({ endpoints: 10, waiting }))
]

const nameOf = ({ endpoints, waiting }: Case) => {
  const of = `${endpoints.toLocaleString("en")} endpoints`
  return waiting === 0 ? of : `${of}, ${waiting.toLocaleString("en")} waiting`
}

const storeCase = Effect.fnUntraced(function* ({ endpoints, waiting }: Case, url: string) {
  yield* addEndpoints(endpoints, (number) => ({
    tenant: `t${number % tenants}`,
    id: `e${number}`,
    url: `${url}/${number}`,
    types: number < mostBusy ? ["busy"] : ["invoice.>", "*.created"]
  }))
  if (waiting === 0) return
  const tenant = "waiting"
  yield* addEndpoints(paused, (number) => ({
    ...{ tenant, id: `p${number}`, url, types: ["invoice.>"] },
    paused: { at: 0, by: "bench" }
  }))
  yield* storeWaiting(waiting, (number) => ({ tenant, endpoint: `p${number % paused}` }))
})

const memory = { unit: "MiB", digits: 0 }

/**
 * The number of endpoints, and the deliveries that wait for some of them, should not make other
 * deliveries more expensive.
 */
export const growth: Scenario = {
  name: "growth",
  measures: "What a delivery costs, and the memory, with many endpoints and with much that waits.",
  limit: "The limit is a loop that signs and POSTs and does nothing else.",
  figures: {
    ...raceFigures,
    delivers: { title: "worker delivers after", unit: "s", digits: 1, panel: "delivers after, s" },
    settles: { title: "worker is idle after", unit: "s", digits: 1 },
    idleWorker: { title: "worker, idle", ...memory, panel: "worker's memory, idle, MiB" },
    idleBroker: { title: "broker, idle", ...memory, panel: "broker's memory, idle, MiB" },
    worker: { title: "worker, busy", ...memory, panel: "worker's memory, busy, MiB" },
    broker: { title: "broker, busy", ...memory, panel: "broker's memory, busy, MiB" }
  },
  run: Effect.fnUntraced(function* (settings, row) {
    const { quick, rounds = quick ? 1 : 3 } = settings
    const count = quick ? 4_000 : 30_000
    const receiver = yield* startReceiver()
    for (const it of casesOf(settings))
      yield* Effect.gen(function* () {
        const ground = yield* prepare(receiver, storeCase(it, receiver.url))
        const { broker, worker } = ground
        const settles = yield* untilIdle(worker.pid)
        const idle = { worker: memoryOf(worker.pid), broker: memoryOf(broker.pid) }
        const busy = Math.min(it.endpoints, mostBusy)
        yield* race(
          ground,
          {
            of: nameOf(it),
            rounds,
            publishing: { subject: "events.t*.busy", subjects: busy, count, bytes },
            fanOut: 1,
            posting: { endpoints: busy, atOnce: Math.min(busy, 10) * endpointCap },
            more: () => ({
              delivers: worker.after / 1000,
              settles: (worker.after + settles) / 1000,
              idleWorker: idle.worker,
              idleBroker: idle.broker,
              worker: memoryOf(worker.pid),
              broker: memoryOf(broker.pid)
            })
          },
          row
        )
      }).pipe(Effect.scoped)
    return {
      settings: { events: count, bytes, rounds, tenants, "endpoints that get events": mostBusy },
      notes: [
        ...(quick ? ["up to 10,000 endpoints and 10,000 waiting: a quick run"] : []),
        `at most ${mostBusy.toLocaleString("en")} endpoints get events; what waits, waits for ${paused} that are paused`,
        "the worker has come to rest before it is measured: after its start it looks through what waits"
      ]
    }
  })
}
