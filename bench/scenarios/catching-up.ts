import { Effect, Fiber } from "effect"
import { addDownAndCalm, follow, tick, untilRouted } from "../down-and-calm.ts"
import { watch } from "../machine.ts"
import type { Publisher, Receiver } from "../processes.ts"
import { readBy, startPublisher, startWorker } from "../processes.ts"
import { startBrokerToRestart } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const store = 2 * 1024 ** 3
/** Service time of the receiver that comes back, ms. */
const service = 5
/** Events a second of the tenant that is well. */
const calmPerSecond = 200
/** Time for which it is measured at once, s. */
const slice = 5
/** How many slices it is measured alone. */
const aloneSlices = 4

/** Publishes for the tenant that is well until interrupted. Returns how many in all. */
const keepPublishing = (publisher: Publisher, slices: number, isOver: () => boolean) =>
  Effect.promise(async () => {
    let published = 0
    for (let n = 0; n < slices && !isOver(); n++) {
      const count = slice * calmPerSecond
      await publisher.publish({ ...tick, count, perSecond: calmPerSecond })
      published += count
    }
    return published
  })

const latencyOf = (receiver: Receiver, published: number) =>
  Effect.promise(async () => {
    const counted = await receiver.received(published)
    await receiver.reset()
    return counted.latency
  })

/**
 * Thousands of endpoints catch up, each on events of its own that lie all over the event stream, from
 * a broker that has just started: nothing of it is in memory.
 */
export const catchingUp: Scenario = {
  name: "catching-up",
  measures:
    "What thousands of endpoints that catch up at different places of the event stream cost, and do to another tenant.",
  limit: "Its measure is the other tenant alone, just before.",
  sides: { petrel: "beside them", limit: "alone" },
  onlyNamed: true,
  figures: {
    p99: { title: "the other tenant's p99", unit: "ms", digits: 1 },
    alone: { title: "p99 alone", unit: "ms", digits: 1, side: "limit" },
    ratio: { title: "p99, ratio", unit: "", digits: 2 },
    read: { title: "read by the broker a delivery", unit: "KiB", digits: 1 },
    broker: { title: "broker CPU a delivery", unit: "µs", digits: 0 },
    worker: { title: "worker CPU a delivery", unit: "µs", digits: 0 },
    drained: { title: "delivered in", unit: "s", digits: 1 },
    missing: { title: "missing", unit: "", digits: 0 },
    twice: { title: "delivered more than once", unit: "", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ load, quick }, row) {
    const { body: bytes = 1024, endpoints = quick ? 500 : 10_000, events = 40 } = load
    const broker = yield* startBrokerToRestart(store)
    const { calmReceiver, receiver } = yield* addDownAndCalm(broker, endpoints, (number) => [
      `own-${number}`
    ])
    const worker = yield* startWorker(broker.url)
    const publisher = yield* startPublisher(broker.url)
    yield* Effect.promise(() => receiver.behave({ down: true }))
    const wanted = endpoints * events
    yield* Effect.promise(() =>
      publisher.publish({
        subject: "events.bench.own-*",
        subjects: endpoints,
        bytes,
        count: wanted
      })
    )
    const routed = yield* untilRouted(broker)
    const { pid } = yield* broker.restart
    const calmPublisher = yield* startPublisher(broker.url)
    const published = yield* keepPublishing(calmPublisher, 1, () => false)
    yield* latencyOf(calmReceiver, published)
    const alone = yield* latencyOf(
      calmReceiver,
      yield* keepPublishing(calmPublisher, aloneSlices, () => false)
    )

    const before = readBy(pid)
    const watched = watch({ worker: [worker.pid], broker: [pid] })
    yield* Effect.promise(() => receiver.reset())
    yield* Effect.promise(() => receiver.behave({ service }))
    let isOver = false
    const calm = yield* Effect.forkScoped(
      keepPublishing(calmPublisher, Number.POSITIVE_INFINITY, () => isOver)
    )
    const drained = yield* Effect.promise(() => follow(receiver, wanted - routed.dead, wanted / 50))
    const { cpu, use } = watched()
    const read = readBy(pid) - before
    isOver = true
    const beside = yield* latencyOf(calmReceiver, yield* Fiber.join(calm))
    const { requests } = yield* Effect.promise(() => receiver.count())
    const of = `${endpoints.toLocaleString("en")} endpoints, ${events.toLocaleString("en")} events each`
    row({
      of,
      round: 1,
      figures: {
        ...{ p99: beside.p99, alone: alone.p99, ratio: beside.p99 / alone.p99 },
        read: read / requests / 1024,
        broker: (cpu.broker ?? 0) / requests,
        worker: (cpu.worker ?? 0) / requests,
        drained: drained.seconds,
        missing: Math.max(0, wanted - requests),
        twice: Math.max(0, requests - wanted)
      },
      machine: { petrel: use }
    })
    return {
      settings: { endpoints, events, bytes, store, "service, ms": service },
      aims: [
        { of, figure: "missing", atMost: 0 },
        { of, figure: "twice", atMost: 0 }
      ],
      notes: [
        "each event is for one endpoint, and the events of all endpoints lie in turn: those of one are as far from each other as can be",
        `the time of the drain leaves out the last ${(wanted / 50).toLocaleString("en")}, which may be retries`
      ]
    }
  })
}
