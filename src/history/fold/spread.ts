import { firstRound } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { quantile, stepOf } from "../../policy/durations.ts"

/** Groups of numbers of attempts, each with its least number. */
const groups = [
  ["0", 0],
  ["1", 1],
  ["2", 2],
  ["3-5", 3],
  ["6-10", 6],
  ["11-20", 11],
  ["21+", 21]
] as const

/** Quantiles of durations, ms: within a factor of 2^(1/4) of the exact ones, or within 1 ms. */
export interface Quantiles {
  readonly p50: number
  readonly p90: number
  readonly p99: number
}

/** The fields of a fact that are counted. Times in ms since the epoch, durations in ms. */
export type Spreadable = Pick<Fact, "attempt" | "durationMs" | "eventAt" | "kind" | "round"> & {
  readonly at?: number | undefined
}

const quantilesOf = (counts: ReadonlyArray<number>): Quantiles | undefined => {
  const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => quantile(counts, share))
  return p50 === undefined || p90 === undefined || p99 === undefined ? undefined : { p50, p90, p99 }
}

/** Keeps the array dense: `quantile` takes its length for the longest duration. */
const count = (counts: Array<number>, index: number, times: number): void => {
  while (counts.length <= index) counts.push(0)
  counts[index] = (counts[index] ?? 0) + times
}

const addTo = (counts: Array<number>, others: ReadonlyArray<number>): void => {
  for (const [index, times] of others.entries()) count(counts, index, times)
}

/**
 * How many attempts deliveries took, how long it took until they succeeded, and how long each
 * request took. Durations are counted by the steps of a logarithmic scale, so that memory does not
 * grow with their number.
 */
export class Spread {
  readonly #attempts: Array<number> = []
  readonly #toSuccess: Array<number> = []
  readonly #latency: Array<number> = []

  /** Counts a fact. Ignores the kinds that tell of no attempt and no end. */
  note({ at, attempt = 0, durationMs, eventAt, kind, round = firstRound }: Spreadable): void {
    const isDelivered = kind === "delivered" || kind === "delivered-late"
    if (!isDelivered && kind !== "attempt-failed" && kind !== "dead-lettered") return
    if (kind !== "dead-lettered" && durationMs !== undefined)
      count(this.#latency, stepOf(durationMs), 1)
    if (kind !== "attempt-failed")
      count(
        this.#attempts,
        groups.findLastIndex(([, least]) => attempt >= least),
        1
      )
    // A further round begins at a time that its end does not tell.
    if (isDelivered && round === firstRound && at !== undefined && eventAt !== undefined)
      count(this.#toSuccess, stepOf(at - eventAt), 1)
  }

  /** Adds all that another one has counted. */
  add(other: Spread): void {
    addTo(this.#attempts, other.#attempts)
    addTo(this.#toSuccess, other.#toSuccess)
    addTo(this.#latency, other.#latency)
  }

  /** Number of ended deliveries by the number of attempts that they took, without empty groups. */
  get attempts(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      groups.flatMap(([name], index) => {
        const times = this.#attempts[index] ?? 0
        return times === 0 ? [] : [[name, times]]
      })
    )
  }

  /**
   * From when the event was stored until the answer, of deliveries that succeeded in the round that
   * routing began; undefined without any.
   */
  get toSuccess(): Quantiles | undefined {
    return quantilesOf(this.#toSuccess)
  }

  /** Of all attempts; undefined without any. */
  get latency(): Quantiles | undefined {
    return quantilesOf(this.#latency)
  }
}
