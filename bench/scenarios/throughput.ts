import { Effect } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { watch } from "../machine.ts"
import { memoryOf, startLimit, startPublisher, startReceiver, startWorker } from "../processes.ts"
import { addEndpoints, startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const endpoints = 10
const bytes = 1024
/** What the caps of all endpoints let be in flight together. */
const atOnce = endpoints * 10

/** One worker, events of 1 KB, 10 endpoints that answer at once. */
export const throughput: Scenario = {
  name: "throughput",
  measures: "Deliveries per second of one worker.",
  limit: "The limit is a loop that signs and POSTs and does nothing else.",
  figures: {
    petrel: { title: "petrel", unit: "/s", digits: 0, panel: "deliveries a second" },
    limit: {
      ...{ title: "limit", unit: "/s", digits: 0 },
      ...{ panel: "deliveries a second", side: "limit" }
    },
    ratio: { title: "ratio", unit: "", digits: 3, panel: "ratio to the limit" },
    workerCpu: { title: "worker CPU", unit: "µs", digits: 0, panel: "worker's CPU a delivery, µs" },
    limitCpu: {
      ...{ title: "limit CPU", unit: "µs", digits: 0 },
      ...{ panel: "worker's CPU a delivery, µs", side: "limit" }
    },
    brokerCpu: {
      ...{ title: "broker CPU", unit: "µs", digits: 0 },
      panel: "broker's CPU a delivery, µs"
    },
    memory: { title: "worker memory", unit: "MiB", digits: 0 },
    receiverAlone: { title: "receiver in a second of CPU", unit: "requests", digits: 0 },
    publisherAlone: { title: "publisher in a second of CPU", unit: "events", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 2 : 5 }, row) {
    const events = quick ? 8_000 : 60_000
    const receiver = yield* startReceiver()
    const limit = yield* startLimit(receiver)
    const broker = yield* startBroker()
    yield* addEndpoints(endpoints, (number) => ({
      id: `e${number}`,
      url: `${receiver.url}/${number}`,
      types: [`type${number}`]
    })).pipe(Effect.provide(Broker.layer(broker)))
    const worker = yield* startWorker(broker.url)
    const publisher = yield* startPublisher(broker.url)

    const runLimit = async () => {
      await receiver.reset()
      const watched = watch({ limit: [limit.pid], receiver: [receiver.pid] })
      const { ms } = await limit.post({ count: events, endpoints, bytes, atOnce })
      return { ...watched(), perSecond: events / (ms / 1000) }
    }
    const runPetrel = async () => {
      await receiver.reset()
      const watched = watch({
        worker: [worker.pid],
        broker: [broker.pid],
        receiver: [receiver.pid],
        publisher: [publisher.pid]
      })
      const subject = "events.bench.type*"
      const published = publisher.publish({ subject, subjects: endpoints, count: events, bytes })
      const { first, last } = await receiver.received(events)
      await published
      return { ...watched(), perSecond: (events - 1) / ((last - first) / 1000) }
    }

    for (let round = 0; round <= rounds; round++) {
      const loop = yield* Effect.promise(runLimit)
      const petrel = yield* Effect.promise(runPetrel)
      // It warms up compilers and caches.
      if (round === 0) continue
      row({
        of: "1 worker",
        round,
        figures: {
          petrel: petrel.perSecond,
          limit: loop.perSecond,
          ratio: petrel.perSecond / loop.perSecond,
          workerCpu: (petrel.cpu.worker ?? 0) / events,
          limitCpu: (loop.cpu.limit ?? 0) / events,
          brokerCpu: (petrel.cpu.broker ?? 0) / events,
          memory: memoryOf(worker.pid),
          receiverAlone: (events * 1e6) / (loop.cpu.receiver ?? 0),
          publisherAlone: (events * 1e6) / (petrel.cpu.publisher ?? 0)
        },
        machine: { petrel: petrel.use, limit: loop.use }
      })
    }
    return { settings: { events, endpoints, bytes, rounds, "in flight": atOnce, workers: 1 } }
  })
}
