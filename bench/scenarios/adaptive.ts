import { Effect } from "effect"
import type { TopLevelSpec } from "vega-lite"
import { connectTo } from "../../src/broker/connection.ts"
import { sideColor } from "../chart.ts"
import { watch } from "../machine.ts"
import { startPublisher, startReceiver, startWorker } from "../processes.ts"
import { addEndpoints, startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

/** Service time of a request, ms. */
const service = 20
const cap = 40
/** Requests served concurrently, normally and with half of the receiver unavailable. */
const places = { all: 16, half: 8 }
/** Events per second: about the receiver's capacity while all its places are available. */
const perSecond = 600
const sides = { petrel: "on", limit: "off" }
const modes = ["off", "on"] as const

/** The receiver's counts within a second. */
interface Seen {
  readonly side: "off" | "on"
  readonly second: number
  readonly what: "most at once" | "refused" | "served"
  readonly value: number
}

const course = (seen: ReadonlyArray<Seen>): TopLevelSpec => ({
  data: { values: [...seen] },
  columns: 1,
  facet: { field: "what", title: null, sort: ["most at once", "refused", "served"] },
  spec: {
    width: 560,
    height: 120,
    mark: { type: "line", interpolate: "step-after" },
    encoding: {
      x: { field: "second", type: "quantitative", title: "second" },
      y: { field: "value", type: "quantitative", title: null },
      color: { ...sideColor(sides), title: "--adapt" }
    }
  },
  resolve: { scale: { y: "independent" } }
})

/**
 * Two endpoints whose receivers each serve a limited number of concurrent requests and refuse the
 * others. In the second third of the time, half of the places are unavailable.
 */
export const adaptive: Scenario = {
  name: "adaptive",
  measures:
    "What --adapt on does with a receiver that serves 16 at once, half as many for a while.",
  limit: "Beside it, the same endpoint without: only its cap holds requests back.",
  sides,
  onlyNamed: true,
  figures: {
    served: { title: "served", unit: "", digits: 0 },
    refused: { title: "refused", unit: "", digits: 0 },
    share: { title: "refused of all requests", unit: "%", digits: 1 }
  },
  run: Effect.fnUntraced(function* ({ quick }, row) {
    const third = quick ? 3 : 10
    const seconds = 3 * third
    const receivers = yield* Effect.forEach(modes, () => startReceiver())
    const behave = (places: number) =>
      Promise.all(receivers.map((receiver) => receiver.behave({ service, places })))
    const broker = yield* startBroker()
    yield* Effect.provide(
      addEndpoints(modes.length, (number) => ({
        id: modes[number] ?? "",
        url: `${receivers[number]?.url}/`,
        types: ["tick"],
        retry: {
          backoff: { kind: "fixed", delay: "1 second" },
          ...{ jitter: "full", maxAttempts: 100, window: "1 hour", retryAfterCap: "1 hour" }
        },
        circuit: { failures: 1000, rate: "none" },
        maxInFlight: cap,
        adapt: modes[number] === "on"
      })),
      connectTo(broker)
    )
    const worker = yield* startWorker(broker.url)
    const publisher = yield* startPublisher(broker.url)
    const watched = watch({
      ...{ worker: [worker.pid], broker: [broker.pid], publisher: [publisher.pid] },
      receiver: receivers.map(({ pid }) => pid)
    })
    const seen = yield* Effect.promise(async () => {
      const all: Array<Seen> = []
      await behave(places.all)
      const published = publisher.publish({
        ...{ subject: "events.bench.tick", subjects: 1, bytes: 64 },
        ...{ count: perSecond * seconds, perSecond }
      })
      const begun = performance.now()
      await Promise.all(receivers.map((receiver) => receiver.reset()))
      for (let second = 0; second < seconds; second++) {
        if (second === third) await behave(places.half)
        if (second === 2 * third) await behave(places.all)
        const left = begun + (second + 1) * 1000 - performance.now()
        await new Promise((resolve) => setTimeout(resolve, left))
        const counts = await Promise.all(receivers.map((receiver) => receiver.reset()))
        for (const [number, { most, refused, requests }] of counts.entries()) {
          const side = modes[number] ?? "off"
          all.push({ side, second, what: "most at once", value: most })
          all.push({ side, second, what: "refused", value: refused })
          all.push({ side, second, what: "served", value: requests })
        }
      }
      await published
      return all
    })
    const { use } = watched()
    for (const side of modes) {
      const sum = (what: Seen["what"]) =>
        seen.filter((it) => it.side === side && it.what === what).reduce((a, b) => a + b.value, 0)
      const [refused, served] = [sum("refused"), sum("served")]
      const share = (100 * refused) / (refused + served)
      const machine = side === "on" ? { machine: { petrel: use } } : {}
      row({ of: `--adapt ${side}`, round: 1, figures: { served, refused, share }, ...machine })
    }
    return {
      settings: {
        ...{ seconds, perSecond, cap, "receiver's latency, ms": service },
        ...{ places: places.all, "in the second third": places.half }
      },
      details: { course: seen },
      picture: course(seen)
    }
  })
}
