import { Effect } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { addTyped, typeSubjects, workerRoom } from "../ground.ts"
import type { Limit, Worker } from "../processes.ts"
import { startLimit, startPublisher, startReceiver, startWorker } from "../processes.ts"
import { race, raceFigures } from "../race.ts"
import { startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const sizes = [1, 2, 4]
const bytes = 1024
/** Service time of the receiver for a request, ms. */
const service = 50
/**
 * Their limits allow 4,000 requests in flight, so that they restrict neither four small capacities
 * nor one default capacity.
 */
const endpoints = 400
/** A capacity that cores do not restrict: a worker makes at most 640 requests a second. */
const small = 32

const rooms = [
  { room: small, options: ["--max-in-flight", String(small)], name: `room for ${small}` },
  { room: workerRoom, options: [], name: "the default room" }
]

/** Returns the number of events for a worker in a round: a few seconds of work. */
const share = (room: number, quick: boolean) => {
  if (room === small) return quick ? 300 : 2_500
  return quick ? 1_000 : 10_000
}

/**
 * Receivers that take 50 ms: once with workers that are limited by their capacity, once with the
 * default capacity.
 */
export const scaleOut: Scenario = {
  name: "scale-out",
  measures: "Deliveries per second of 1, 2 and 4 workers to receivers that take 50 ms.",
  limit: "The limit is as many loops that sign and POST, each with as many requests at once.",
  figures: {
    ...raceFigures,
    bound: { title: "room ÷ 50 ms", unit: "/s", digits: 0 },
    ofBound: { title: "ratio to room ÷ 50 ms", unit: "", digits: 3 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 1 : 3 }, row) {
    const receiver = yield* startReceiver()
    yield* Effect.promise(() => receiver.behave({ service }))
    const broker = yield* startBroker()
    yield* Effect.provide(
      addTyped(endpoints, (number) => `${receiver.url}/${number}`),
      connectTo(broker)
    )
    const publisher = yield* startPublisher(broker.url)
    for (const { name, options, room } of rooms)
      yield* Effect.gen(function* () {
        const limits: Array<Limit> = []
        const workers: Array<Worker> = []
        for (const size of quick ? [1, 4] : sizes) {
          const joining = Array.from({ length: size - workers.length })
          const join = <A, E, R>(start: Effect.Effect<A, E, R>) =>
            Effect.forEach(joining, () => start, { concurrency: "unbounded" })
          limits.push(...(yield* join(startLimit(receiver))))
          workers.push(...(yield* join(startWorker(broker.url, options))))
          const bound = (size * room) / (service / 1000)
          const count = size * share(room, quick)
          yield* race(
            { receiver, broker, publisher, limits, workers },
            {
              of: `${size} with ${name}`,
              rounds,
              publishing: { subject: typeSubjects, subjects: endpoints, count, bytes },
              fanOut: 1,
              posting: { endpoints, atOnce: room },
              more: (petrel) => (room === small ? { bound, ofBound: petrel.perSecond / bound } : {})
            },
            row
          )
        }
      }).pipe(Effect.scoped)
    return {
      settings: { "receiver's latency, ms": service, endpoints, bytes, rounds },
      notes: [
        `with room for ${small} requests (--max-in-flight ${small}) the workers are the bound, and more of them do more; with the default room of ${workerRoom.toLocaleString("en")} it is the cores, which broker, receiver, publisher and all workers share`,
        "the others go on while a worker joins them",
        "each worker has as many of the 8 partitions as the next, but they do not hold equally many endpoints"
      ]
    }
  })
}
