/* An open loop of events: latency is measured from the time that an event is due. */

import type { TopLevelSpec } from "vega-lite"
import { sideColor } from "./chart.ts"
import { type Ground, watchLimit, watchPetrel } from "./ground.ts"
import type { Latency } from "./programs/latency.ts"
import type { Posting } from "./programs/limit.ts"
import type { Publishing } from "./programs/publisher.ts"
import type { Counted } from "./programs/receiver.ts"
import { defaultSides, type Figure, type Sides } from "./scenario.ts"

/** One side of a round. */
export interface Timed extends ReturnType<ReturnType<typeof watchPetrel>> {
  readonly counted: Counted
  /** How late the publisher, or the limit's loop, sent its requests. */
  readonly late: Latency
}

/**
 * Runs Petrel's side.
 *
 * @param arriving number of events that arrive at the measured receiver.
 * @param before number that the receiver has counted already, when a side continues.
 */
export const timePetrel = async (
  ground: Ground,
  publishing: Publishing & { readonly perSecond: number },
  arriving: number,
  before = 0
): Promise<Timed> => {
  if (before === 0) await ground.receiver.reset()
  const watched = watchPetrel(ground)
  const [counted, { late }] = await Promise.all([
    ground.receiver.received(before + arriving),
    ground.publisher.publish(publishing)
  ])
  return { ...watched(), counted, late }
}

/** Runs the limit's side. */
export const timeLimit = async (
  ground: Ground,
  posting: Posting & { readonly perSecond: number }
): Promise<Timed> => {
  const { limits, receiver } = ground
  const [limit] = limits
  if (limit === undefined) throw new Error("there is no limit")
  await receiver.reset()
  const watched = watchLimit(ground)
  const { late } = await limit.post(posting)
  return { ...watched(), counted: await receiver.count(), late }
}

const ms = { unit: "ms", digits: 2 }

/** The figures of a latency. */
export const latencyFigures = {
  p50: { title: "p50", ...ms, panel: "p50, ms" },
  p99: { title: "p99", ...ms, panel: "p99, ms" },
  p999: { title: "p99.9", ...ms, panel: "p99.9, ms" },
  max: { title: "longest", ...ms }
} as const satisfies Record<string, Figure>

/** A point of a latency curve. */
export interface CurvePoint {
  readonly side: keyof Sides
  readonly round: number
  /** One in this many takes longer. */
  readonly oneIn: number
  readonly ms: number
}

/** Cut off where there are too few events for a meaningful value. */
export const curveOf = (
  side: keyof Sides,
  round: number,
  { count, curve }: Latency
): ReadonlyArray<CurvePoint> =>
  curve.map(([oneIn, ms]) => ({ side, round, oneIn, ms })).filter(({ oneIn }) => oneIn <= count / 5)

/** Latencies of both sides over "one in N takes longer", a line for each round. */
export const curves = (
  points: ReadonlyArray<CurvePoint>,
  sides: Sides = defaultSides
): TopLevelSpec => ({
  data: { values: points.map((point) => ({ ...point, side: sides[point.side] })) },
  width: 560,
  height: 300,
  mark: { type: "line", opacity: 0.7, strokeWidth: 1.5 },
  encoding: {
    x: {
      field: "oneIn",
      type: "quantitative",
      scale: { type: "log", domainMin: 1 },
      axis: {
        values: [1, 2, 10, 100, 1_000, 10_000],
        labelExpr:
          "datum.value == 1 ? 'least' : datum.value == 2 ? 'p50' : 'p' + format(100 - 100 / datum.value, '.4~r')"
      },
      title: null
    },
    y: {
      field: "ms",
      type: "quantitative",
      scale: { type: "log" },
      title: "ms from when an event is due to its arrival"
    },
    color: sideColor(sides),
    detail: { field: "round" }
  }
})
