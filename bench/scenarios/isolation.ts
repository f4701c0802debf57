import { Effect } from "effect"
import { addTyped, type Ground, prepare, typeSubjects } from "../ground.ts"
import { meanUse } from "../machine.ts"
import { type CurvePoint, curveOf, curves, latencyFigures, timePetrel } from "../open-loop.ts"
import { startReceiver } from "../processes.ts"
import type { Scenario } from "../scenario.ts"
import { untilWaiting } from "../waiting.ts"

const endpoints = 10
const bytes = 1024
const perSecond = 1_000
/**
 * A round alternates between both sides in this many turns, so that a temporarily slow machine
 * affects both.
 */
const turns = 2
/** An address without a listener. */
const nowhere = "http://127.0.0.1:1"

const sides = { petrel: "one down", limit: "all well" }

/**
 * 1,000 events a second for 10 endpoints, of which 9 are measured. The tenth is healthy on one
 * installation. On the other it has been down for long and still gets its events. Both workers have
 * processed the same number of events before: a worker that has processed fewer has a smaller young
 * generation, whose collections are shorter.
 */
export const isolation: Scenario = {
  name: "isolation",
  measures:
    "What an endpoint that is down, with much waiting for it, does to the latency of others.",
  limit: "Its measure is a second worker and broker of which all endpoints are well, in turn.",
  sides,
  figures: {
    ...latencyFigures,
    quietP50: { ...latencyFigures.p50, title: "all well, p50", side: "limit" },
    quietP99: { ...latencyFigures.p99, title: "all well, p99", side: "limit" },
    quietP999: { ...latencyFigures.p999, title: "all well, p99.9", side: "limit" },
    ratio: {
      title: "p99, ratio to all well",
      unit: "",
      digits: 2,
      panel: "p99, ratio to all well"
    },
    waiting: { title: "waiting at the end", unit: "", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 2 : 8 }, row) {
    const waiting = quick ? 10_000 : 100_000
    const count = perSecond * (quick ? 1 : 5)
    const measured = count - count / endpoints
    const tenth = yield* startReceiver()
    const on = Effect.fnUntraced(function* (first: string) {
      const receiver = yield* startReceiver()
      return yield* prepare(
        receiver,
        addTyped(endpoints, (number) => `${number === 0 ? first : receiver.url}/${number}`)
      )
    })
    const well = yield* on(tenth.url)
    const troubled = yield* on(nowhere)
    const before = { subject: "events.bench.type0", subjects: 1, count: waiting, bytes }
    yield* Effect.promise(() => well.publisher.publish(before))
    yield* Effect.promise(() => tenth.received(waiting))
    yield* Effect.promise(() => troubled.publisher.publish(before))
    yield* untilWaiting(troubled, waiting)

    const time = (ground: Ground, turn: number) =>
      Effect.promise(() =>
        timePetrel(
          ground,
          { subject: typeSubjects, subjects: endpoints, count: count / turns, bytes, perSecond },
          measured / turns,
          (turn * measured) / turns
        )
      )
    /** Alternates between both sides. The receiver's counts of the last turn cover all turns. */
    const timeBoth = Effect.fnUntraced(function* () {
      let [quiet, down] = [yield* time(well, 0), yield* time(troubled, 0)]
      const uses = { quiet: [quiet.use], down: [down.use] }
      for (let turn = 1; turn < turns; turn++) {
        quiet = yield* time(well, turn)
        uses.quiet.push(quiet.use)
        down = yield* time(troubled, turn)
        uses.down.push(down.use)
      }
      return {
        quiet: { latency: quiet.counted.latency, use: meanUse(uses.quiet) },
        down: { latency: down.counted.latency, use: meanUse(uses.down) }
      }
    })
    const of = `one of ${endpoints} down, ${waiting.toLocaleString("en")} waiting`
    const points: Array<CurvePoint> = []
    // The first round warms up compilers and caches.
    for (let round = 0; round <= rounds; round++) {
      const { down, quiet } = yield* timeBoth()
      if (round === 0) continue
      const { max, p50, p99, p999 } = down.latency
      const calm = quiet.latency
      points.push(...curveOf("petrel", round, down.latency))
      points.push(...curveOf("limit", round, calm))
      row({
        of,
        round,
        figures: {
          ...{ p50, p99, p999, max },
          ...{ quietP50: calm.p50, quietP99: calm.p99, quietP999: calm.p999 },
          ratio: p99 / calm.p99,
          waiting: yield* untilWaiting(troubled, waiting)
        },
        machine: { petrel: down.use, limit: quiet.use }
      })
    }
    return {
      settings: {
        waiting,
        "events a round": count,
        "turns a round": turns,
        perSecond,
        bytes,
        endpoints,
        rounds
      },
      notes: [
        ...(quick ? ["10,000 wait instead of 100,000: a quick run"] : []),
        "the endpoint that is down gets its tenth of the events all the while, and they join what waits"
      ],
      aims: [{ of, figure: "ratio", atMost: 1.2 }],
      details: { curve: points },
      picture: curves(points, sides)
    }
  })
}
