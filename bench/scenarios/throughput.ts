import { Effect } from "effect"
import { addTyped, endpointCap, prepare, typeSubjects } from "../ground.ts"
import { memoryOf, startReceiver } from "../processes.ts"
import { race, raceFigures } from "../race.ts"
import type { Scenario } from "../scenario.ts"

const endpoints = 10
const bytes = 1024
const atOnce = endpoints * endpointCap

/** Events of 1 KB, each for one of 10 endpoints that answer at once. */
export const throughput: Scenario = {
  name: "throughput",
  measures: "Deliveries per second of one worker.",
  limit: "The limit is a loop that signs and POSTs and does nothing else.",
  figures: {
    ...raceFigures,
    memory: { title: "worker memory", unit: "MiB", digits: 0 },
    receiver: { title: "receiver, in a second of CPU", unit: "requests", digits: 0 },
    publisher: { title: "publisher, in a second of CPU", unit: "events", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 2 : 5 }, row) {
    const count = quick ? 8_000 : 60_000
    const receiver = yield* startReceiver()
    const ground = yield* prepare(
      receiver,
      addTyped(endpoints, (number) => `${receiver.url}/${number}`)
    )
    const of = "1 worker"
    yield* race(
      ground,
      {
        of,
        rounds,
        publishing: { subject: typeSubjects, subjects: endpoints, count, bytes },
        fanOut: 1,
        posting: { endpoints, atOnce },
        more: (petrel, limit) => ({
          memory: ground.workers.map(({ pid }) => memoryOf(pid)).reduce((a, b) => a + b, 0),
          receiver: (limit.deliveries * 1e6) / (limit.cpu.receiver ?? 0),
          publisher: (petrel.deliveries * 1e6) / (petrel.cpu.publisher ?? 0)
        })
      },
      row
    )
    return {
      settings: { events: count, bytes, endpoints, rounds, "limit's requests at once": atOnce },
      aims: [{ of, figure: "ratio", atLeast: 0.4 }]
    }
  })
}
