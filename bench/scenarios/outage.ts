import { Effect } from "effect"
import type { TopLevelSpec } from "vega-lite"
import { connectTo } from "../../src/broker/connection.ts"
import { watch } from "../machine.ts"
import type { Receiver } from "../processes.ts"
import { startNaive, startPublisher, startReceiver, startWorker } from "../processes.ts"
import { addEndpoints, startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

/** Service time of a request, ms. */
const service = 20
/** Requests that the receiver serves concurrently; it refuses further ones with 429. */
const places = 16
const bytes = 1024
/** A side has caught up when it has delivered this share of what was published. */
const caughtUpShare = 0.999
/** How long the course goes on after both sides have caught up, s. */
const quietSeconds = 30
/** Length of an interval of the picture, s. */
const intervalSeconds = 5
const sides = { petrel: "petrel", limit: "naive sender" }
const answers = ["served", "refused"] as const

/** The times of the course, in seconds from the first event. */
interface Times {
  /** When the receiver goes down. */
  readonly down: number
  /** When it is back. */
  readonly back: number
  /** When the last event is published, and the measurement ends at the latest. */
  readonly last: number
}

/** Requests a second at one receiver over an interval. */
interface Interval {
  readonly side: string
  readonly second: number
  readonly answer: (typeof answers)[number]
  readonly perSecond: number
}

const course = (intervals: ReadonlyArray<Interval>, { back, down }: Times): TopLevelSpec => ({
  data: { values: [...intervals] },
  columns: 1,
  facet: { field: "side", title: null, sort: [sides.petrel, sides.limit] },
  spec: {
    width: 640,
    height: 150,
    layer: [
      {
        data: { values: [{ down, back }] },
        mark: { type: "rect", color: "#f1f3f5" },
        encoding: { x: { field: "down", type: "quantitative" }, x2: { field: "back" } }
      },
      {
        mark: { type: "area", interpolate: "step-after" },
        encoding: {
          x: { field: "second", type: "quantitative", title: "second (grey: receiver down)" },
          y: { field: "perSecond", type: "quantitative", title: "requests a second" },
          color: {
            field: "answer",
            type: "nominal",
            title: null,
            scale: { domain: [...answers], range: ["#2b8a3e", "#d9480f"] }
          }
        }
      }
    ]
  }
})

/** Lets the receivers fail and come back, and counts what they get. */
const follow = async (
  receivers: Readonly<Record<keyof typeof sides, Receiver>>,
  times: Times,
  perSecond: number
) => {
  const both = Object.values(receivers)
  const behave = (down: boolean) =>
    Promise.all(both.map((receiver) => receiver.behave({ service, places, down })))
  const intervals: Array<Interval> = []
  const caughtUp: Record<string, number> = {}
  const served: Record<string, number> = {}
  await behave(false)
  await Promise.all(both.map((receiver) => receiver.reset()))
  const begun = performance.now()
  for (let second = 0; second < times.last; second += intervalSeconds) {
    if (second === times.down) await behave(true)
    if (second === times.back) await behave(false)
    const left = begun + (second + intervalSeconds) * 1000 - performance.now()
    await new Promise((resolve) => setTimeout(resolve, left))
    for (const [key, side] of Object.entries(sides)) {
      const { refused, requests } = await receivers[key as keyof typeof sides].reset()
      const now = { side, second }
      intervals.push({ ...now, answer: "served", perSecond: requests / intervalSeconds })
      intervals.push({ ...now, answer: "refused", perSecond: refused / intervalSeconds })
      served[side] = (served[side] ?? 0) + requests
      const due = caughtUpShare * perSecond * second
      if (second >= times.back && served[side] >= due)
        caughtUp[side] ??= second + intervalSeconds - times.back
    }
    const both = Object.values(caughtUp)
    if (both.length === 2 && second >= times.back + Math.max(...both) + quietSeconds) break
  }
  return { intervals, caughtUp }
}

/** An endpoint that is down for 10 minutes while events go on coming, beside a naive sender. */
export const outage: Scenario = {
  name: "outage",
  measures: "Requests at an endpoint before, during and after an outage of 10 minutes.",
  limit:
    "Beside it, a naive sender repeats each failed request after a fixed pause, without a cap.",
  sides,
  onlyNamed: true,
  figures: {
    during: { title: "requests while it was down", unit: "", digits: 0 },
    most: { title: "most a second once it was back", unit: "/s", digits: 0 },
    refused: { title: "refused once it was back", unit: "", digits: 0 },
    caughtUp: { title: "caught up, after it was back", unit: "s", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick }, row) {
    const perSecond = 50_000 / 600
    const retrySeconds = quick ? 3 : 30
    const times: Times = quick
      ? { down: 10, back: 40, last: 150 }
      : { down: 60, back: 660, last: 1_500 }
    const total = Math.round(perSecond * times.last)
    const petrel = yield* startReceiver()
    const limit = yield* startReceiver()
    const broker = yield* startBroker()
    const circuit = { coolDown: "2 seconds", maxCoolDown: "10 seconds" }
    yield* Effect.provide(
      addEndpoints(1, () => ({
        ...{ id: "e0", url: `${petrel.url}/`, types: ["tick"] },
        ...(quick ? { circuit } : {})
      })),
      connectTo(broker)
    )
    const worker = yield* startWorker(broker.url)
    const publisher = yield* startPublisher(broker.url)
    const naive = yield* startNaive(limit)
    const watched = watch({
      ...{ worker: [worker.pid], broker: [broker.pid], publisher: [publisher.pid] },
      ...{ naive: [naive.pid], receiver: [petrel.pid, limit.pid] }
    })
    const { caughtUp, intervals } = yield* Effect.promise(async () => {
      const events = { count: total, perSecond, bytes }
      // Both go on until their programs are ended, as the course ends with the backlog.
      const ended = () => undefined
      publisher.publish({ subject: "events.bench.tick", subjects: 1, ...events }).catch(ended)
      naive.send({ ...events, retryMs: 1000 * retrySeconds }).catch(ended)
      return await follow({ petrel, limit }, times, perSecond)
    })
    const { use } = watched()
    for (const [key, side] of Object.entries(sides)) {
      const own = intervals.filter((interval) => interval.side === side)
      const down = own.filter(({ second }) => second >= times.down && second < times.back)
      const after = own.filter(({ second }) => second >= times.back)
      const sum = (some: ReadonlyArray<Interval>) =>
        some.reduce((all, one) => all + one.perSecond * intervalSeconds, 0)
      const seconds = [...new Set(after.map(({ second }) => second))]
      const most = Math.max(
        ...seconds.map((at) => sum(after.filter(({ second }) => second === at)) / intervalSeconds)
      )
      row({
        ...{ of: side, round: 1 },
        figures: {
          ...{ during: sum(down), most, caughtUp: caughtUp[side] ?? Number.NaN },
          refused: sum(after.filter(({ answer }) => answer === "refused"))
        },
        ...(key === "petrel" ? { machine: { petrel: use } } : {})
      })
    }
    return {
      settings: {
        ...{ "outage, s": times.back - times.down, perSecond: Math.round(perSecond), bytes },
        ...{ "receiver's latency, ms": service, places, "naive pause, s": retrySeconds }
      },
      notes: quick ? ["30 s instead of 10 minutes, and a circuit that cools down sooner"] : [],
      details: { course: intervals },
      picture: course(intervals, times)
    }
  })
}
