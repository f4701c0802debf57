import { Effect } from "effect"
import { addTyped, prepare, typeSubjects } from "../ground.ts"
import {
  type CurvePoint,
  curveOf,
  curves,
  latencyFigures,
  timeLimit,
  timePetrel
} from "../open-loop.ts"
import { startReceiver } from "../processes.ts"
import type { Scenario } from "../scenario.ts"

const endpoints = 10
const bytes = 1024
const perSecond = 1_000

/** 1,000 events of 1 KB a second in an open loop, each for one of 10 endpoints. */
export const latency: Scenario = {
  name: "latency",
  measures: "How long it takes from when an event is due to its arrival, at 1,000 events a second.",
  limit: "The limit is a loop that signs and POSTs on the same schedule, without anything between.",
  figures: {
    ...latencyFigures,
    limitP50: { ...latencyFigures.p50, title: "limit, p50", side: "limit" },
    limitP99: { ...latencyFigures.p99, title: "limit, p99", side: "limit" },
    limitP999: { ...latencyFigures.p999, title: "limit, p99.9", side: "limit" },
    workerCpu: { title: "worker CPU a delivery", unit: "µs", digits: 0 },
    brokerCpu: { title: "broker CPU a delivery", unit: "µs", digits: 0 },
    late: { title: "publisher late by, p99", unit: "ms", digits: 2 },
    limitLate: { title: "limit late by, p99", unit: "ms", digits: 2 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 2 : 4 }, row) {
    const count = perSecond * (quick ? 2 : 12)
    const receiver = yield* startReceiver()
    const ground = yield* prepare(
      receiver,
      addTyped(endpoints, (number) => `${receiver.url}/${number}`)
    )
    const of = `${perSecond.toLocaleString("en")} events a second`
    const points: Array<CurvePoint> = []
    // The first round warms up compilers and caches.
    for (let round = 0; round <= rounds; round++) {
      const limit = yield* Effect.promise(() =>
        timeLimit(ground, { count, endpoints, bytes, perSecond })
      )
      const petrel = yield* Effect.promise(() =>
        timePetrel(
          ground,
          { subject: typeSubjects, subjects: endpoints, count, bytes, perSecond },
          count
        )
      )
      if (round === 0) continue
      const { max, p50, p99, p999 } = petrel.counted.latency
      const loop = limit.counted.latency
      points.push(...curveOf("petrel", round, petrel.counted.latency))
      points.push(...curveOf("limit", round, loop))
      row({
        of,
        round,
        figures: {
          ...{ p50, p99, p999, max },
          ...{ limitP50: loop.p50, limitP99: loop.p99, limitP999: loop.p999 },
          workerCpu: (petrel.cpu.worker ?? 0) / count,
          brokerCpu: (petrel.cpu.broker ?? 0) / count,
          ...{ late: petrel.late.p99, limitLate: limit.late.p99 }
        },
        machine: { petrel: petrel.use, limit: limit.use }
      })
    }
    return {
      settings: { "events a round": count, perSecond, bytes, endpoints, rounds, workers: 1 },
      notes: [
        "what counts is when an event was due, not when it was sent: a publisher that is late adds to the latency, and whoever is slow cannot slow the schedule down"
      ],
      aims: [
        { of, figure: "p50", atMost: 2 },
        { of, figure: "p99", atMost: 10 }
      ],
      details: { curve: points },
      picture: curves(points)
    }
  })
}
