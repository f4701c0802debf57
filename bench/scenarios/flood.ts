import { Effect, Fiber } from "effect"
import { addDownAndCalm, tick, untilRouted } from "../down-and-calm.ts"
import { startPublisher, startWorker } from "../processes.ts"
import { startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const store = 4 * 1024 ** 3
const workers = 2
/** Events a second of the tenant that is well, while the flood is routed. */
const calmPerSecond = 50

/**
 * One tenant publishes far more at once than can be routed, each event for one of thousands of its
 * endpoints that are down. Routers give back to the broker what they cannot hold, and the broker
 * delivers that to any of them.
 */
export const flood: Scenario = {
  name: "flood",
  measures:
    "Whether two workers go on routing while one tenant has published far more than they can hold, for endpoints that are down, and how long another tenant's events wait behind that.",
  limit: "It is compared with nothing: routing must not stop.",
  onlyNamed: true,
  figures: {
    routed: { title: "routed in", unit: "s", digits: 1 },
    perSecond: { title: "events routed a second", unit: "", digits: 0 },
    stood: {
      title: "longest time in which none was routed while some were new",
      unit: "s",
      digits: 1
    },
    unrouted: { title: "not routed", unit: "", digits: 0 },
    p50: { title: "the other tenant's p50", unit: "s", digits: 1 },
    p99: { title: "the other tenant's p99", unit: "s", digits: 1 },
    missing: { title: "missing of the other tenant", unit: "", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ load, quick }, row) {
    const { body: bytes = 300, endpoints = quick ? 2_000 : 10_000 } = load
    const { events = quick ? 50_000 : 400_000 } = load
    const broker = yield* startBroker(store)
    const { calmReceiver, receiver } = yield* addDownAndCalm(broker, endpoints, (number) => [
      `own-${number}`
    ])
    for (let n = 0; n < workers; n++) yield* startWorker(broker.url)
    const publisher = yield* startPublisher(broker.url)
    const calmPublisher = yield* startPublisher(broker.url)
    yield* Effect.promise(() => receiver.behave({ down: true }))
    yield* Effect.promise(() =>
      publisher.publish({
        ...{ subject: "events.bench.own-*", subjects: endpoints },
        ...{ bytes, count: events }
      })
    )
    let isOver = false
    const calm = yield* Effect.forkScoped(
      Effect.promise(async () => {
        let published = 0
        while (!isOver) {
          await calmPublisher.publish({ ...tick, count: calmPerSecond, perSecond: calmPerSecond })
          published += calmPerSecond
        }
        return published
      })
    )
    const { stood, took, unrouted } = yield* untilRouted(broker)
    isOver = true
    const published = yield* Fiber.join(calm)
    const { latency, requests } = yield* Effect.promise(() =>
      unrouted === 0 ? calmReceiver.received(published) : calmReceiver.count()
    )
    const of = `${events.toLocaleString("en")} events for ${endpoints.toLocaleString("en")} endpoints that are down`
    row({
      of,
      round: 1,
      figures: {
        ...{ routed: took, perSecond: (events + published - unrouted) / took, stood, unrouted },
        ...{ p50: latency.p50 / 1000, p99: latency.p99 / 1000, missing: published - requests }
      }
    })
    return {
      settings: {
        endpoints,
        events,
        bytes,
        workers,
        store,
        "calm, events a second": calmPerSecond
      },
      aims: [
        { of, figure: "unrouted", atMost: 0 },
        { of, figure: "missing", atMost: 0 },
        { of, figure: "stood", atMost: 20 }
      ],
      notes: [
        "the events of the other tenant pass the flood some 20 s after it began; those before that wait until then",
        "what a router gives back comes again after 20 s at most"
      ]
    }
  })
}
