import { Effect } from "effect"
import type { TopLevelSpec } from "vega-lite"
import { sideColor } from "../chart.ts"
import { endpointCap, type Ground, prepare, watchLimit, watchPetrel } from "../ground.ts"
import { startReceiver } from "../processes.ts"
import { now } from "../programs/clock.ts"
import { addEndpoints } from "../rig.ts"
import type { Scenario } from "../scenario.ts"
import { elsewhere, untilWaiting } from "../waiting.ts"

const bytes = 1024
/** Service time of the receiver for a request, ms. */
const service = 5
/** Interval between progress checks, ms. */
const glance = 250
const sides = { petrel: "petrel", limit: "cap ÷ latency" }

/** The progress of the drain, in seconds from the first delivery. */
interface Glance {
  readonly side: string
  readonly round: number
  readonly seconds: number
  readonly delivered: number
}

/** Brings the endpoint back, and follows the drain until all waiting deliveries have arrived. */
const drain = async ({ receiver }: Ground, waiting: number, round: number) => {
  await receiver.reset()
  const back = now()
  const glances: Array<Glance> = []
  await receiver.behave({ service })
  for (;;) {
    const counted = await receiver.count()
    const { first, requests } = counted
    const seconds = (now() - first) / 1000
    if (requests > 0) glances.push({ side: sides.petrel, round, seconds, delivered: requests })
    if (requests >= waiting) return { counted, glances, noticed: first - back }
    await new Promise((resolve) => setTimeout(resolve, glance))
  }
}

const course = (glances: ReadonlyArray<Glance>): TopLevelSpec => ({
  data: { values: [...glances] },
  width: 560,
  height: 300,
  mark: { type: "line" },
  encoding: {
    x: { field: "seconds", type: "quantitative", title: "seconds from the first delivery" },
    y: { field: "delivered", type: "quantitative", title: "delivered" },
    color: sideColor(sides),
    detail: { field: "round" }
  }
})

/** An endpoint with the default limit that was down, whose receiver takes 5 ms for a request. */
export const recovery: Scenario = {
  name: "recovery",
  measures: "How long it takes to drain what waits for an endpoint that has come back.",
  limit:
    "The theoretical best is the endpoint's cap divided by the latency that the receiver measures; beside it, a loop with as many requests at once.",
  sides,
  figures: {
    seconds: { title: "drained in", unit: "s", digits: 1, panel: "seconds" },
    best: { title: "best", unit: "s", digits: 1, panel: "seconds", side: "limit" },
    ratio: { title: "best ÷ drained in", unit: "", digits: 3, panel: "ratio" },
    petrel: { title: "petrel", unit: "/s", digits: 0 },
    loop: { title: "loop", unit: "/s", digits: 0 },
    loopRatio: { title: "ratio to the loop", unit: "", digits: 3 },
    latency: { title: "receiver's latency", unit: "ms", digits: 2 },
    noticed: { title: "noticed after", unit: "s", digits: 1 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 1 : 3 }, row) {
    const wanted = quick ? 10_000 : 100_000
    const coolDown = quick ? 1 : 5
    const receiver = yield* startReceiver()
    const ground = yield* prepare(
      receiver,
      addEndpoints(1, () => ({
        ...{ id: "e0", url: `${receiver.url}/0`, types: ["type0"] },
        circuit: { coolDown: `${coolDown} seconds`, maxCoolDown: `${coolDown} seconds` }
      }))
    )
    const of = `${wanted.toLocaleString("en")} waiting`
    const glances: Array<Glance> = []
    for (let round = 1; round <= rounds; round++) {
      yield* Effect.promise(() => receiver.behave({ service }))
      const count = wanted / 10
      const watchedLimit = watchLimit(ground)
      const loops = yield* Effect.promise(() =>
        Promise.all(
          ground.limits.map((limit) =>
            limit.post({ count, endpoints: 1, bytes, atOnce: endpointCap })
          )
        )
      )
      const loop = count / (Math.max(...loops.map(({ ms }) => ms)) / 1000)
      const limit = watchedLimit()

      yield* Effect.promise(() => receiver.behave({ down: true }))
      yield* Effect.promise(() =>
        ground.publisher.publish({
          ...{ subject: "events.bench.type0", subjects: 1 },
          ...{ count: wanted, bytes }
        })
      )
      const waiting = yield* untilWaiting(ground, wanted)
      const watchedPetrel = watchPetrel(ground)
      const drained = yield* Effect.promise(() => drain(ground, waiting - elsewhere, round))
      const { first, last, requests, service: latency } = drained.counted
      const seconds = (last - first) / 1000
      const best = (requests * latency) / endpointCap / 1000
      glances.push(
        ...drained.glances,
        ...[0, requests].map((delivered) => ({
          ...{ side: sides.limit, round, delivered },
          seconds: delivered === 0 ? 0 : best
        }))
      )
      const petrel = requests / seconds
      row({
        of,
        round,
        figures: {
          ...{ seconds, best, ratio: best / seconds, petrel, loop, loopRatio: petrel / loop },
          ...{ latency, noticed: drained.noticed / 1000 }
        },
        machine: { petrel: watchedPetrel().use, limit: limit.use }
      })
    }
    return {
      settings: {
        waiting: wanted,
        bytes,
        cap: endpointCap,
        "receiver's latency, ms": service,
        rounds
      },
      notes: [
        ...(quick ? ["10,000 wait instead of 100,000: a quick run"] : []),
        `the last ${elsewhere} are not waited for: a few found the endpoint down, and wait for their retries`,
        `the endpoint's circuit cools down for ${coolDown} s instead of 30 s to 15 min, so that the round need not wait for it; the drain begins with the first delivery, and the cap is reached step by step`,
        "the receiver's timer adds to its 5 ms: what counts is the latency that it measures"
      ],
      details: { course: glances },
      picture: course(glances)
    }
  })
}
