import { Effect } from "effect"
import type { TopLevelSpec } from "vega-lite"
import { addTyped, endpointCap, prepare, typeSubjects } from "../ground.ts"
import { memoryOf, startReceiver } from "../processes.ts"
import { race, raceFigures } from "../race.ts"
import type { Row, Scenario } from "../scenario.ts"
import { slopeOf } from "../spread.ts"

const endpoints = 10
const bytes = 1024

const course = (rows: ReadonlyArray<Row>, perRound: number): TopLevelSpec => ({
  data: {
    values: rows.flatMap(({ figures: { broker = 0, worker = 0 }, round }) => [
      { process: "worker", deliveries: round * perRound, memory: worker },
      { process: "broker", deliveries: round * perRound, memory: broker }
    ])
  },
  width: 560,
  height: 300,
  mark: { type: "line", point: true },
  encoding: {
    x: { field: "deliveries", type: "quantitative", title: "deliveries" },
    y: { field: "memory", type: "quantitative", title: "resident memory, MiB" },
    color: {
      field: "process",
      type: "nominal",
      title: null,
      scale: { domain: ["worker", "broker"], range: ["#d9480f", "#1c7ed6"] }
    }
  }
})

/** Three million deliveries by one process, with its memory measured after each round. */
export const memory: Scenario = {
  name: "memory",
  measures:
    "Whether the memory of worker and broker grows over 2 million deliveries, after a million.",
  limit: "The limit is no growth; a signing and POSTing loop runs in between as everywhere.",
  onlyNamed: true,
  figures: {
    worker: { title: "worker", unit: "MiB", digits: 0 },
    broker: { title: "broker", unit: "MiB", digits: 0 },
    workerSlope: { title: "worker, growth per million deliveries", unit: "MiB", digits: 1 },
    brokerSlope: { title: "broker, growth per million deliveries", unit: "MiB", digits: 1 },
    petrel: raceFigures.petrel,
    ratio: raceFigures.ratio
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 3 : 30 }, row) {
    const count = quick ? 5_000 : 100_000
    const receiver = yield* startReceiver()
    const ground = yield* prepare(
      receiver,
      addTyped(endpoints, (number) => `${receiver.url}/${number}`)
    )
    const rows: Array<Row> = []
    yield* race(
      ground,
      {
        ...{ of: "after each round", rounds, fanOut: 1 },
        publishing: { subject: typeSubjects, subjects: endpoints, count, bytes },
        posting: { endpoints, atOnce: endpoints * endpointCap },
        more: () => ({
          worker: memoryOf(ground.worker.pid),
          broker: memoryOf(ground.broker.pid)
        })
      },
      (it) => {
        rows.push(it)
        row(it)
      }
    )
    // In the first third, compiled code, the young generation and retained data reach their sizes.
    const settled = rows.filter(({ round }) => round > rounds / 3)
    const slope = (figure: string) =>
      slopeOf(
        settled.map(({ figures, round }) => [(round * count) / 1e6, figures[figure] ?? 0] as const)
      )
    const of = "after the first third"
    row({
      of,
      round: rounds,
      figures: { workerSlope: slope("worker"), brokerSlope: slope("broker") }
    })
    return {
      settings: { deliveries: rounds * count, "of them a round": count, bytes, endpoints },
      // A quick run ends before the young generation has reached its size.
      aims: quick ? [] : [{ of, figure: "workerSlope", atMost: 5 }],
      notes: [
        "the broker keeps an index in memory of what its streams keep: it grows with events and facts, not with what a worker does"
      ],
      picture: course(rows, count)
    }
  })
}
