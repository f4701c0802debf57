import { firstRound } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { DurationHistogram } from "../../policy/durations.ts"
import type { Countable, Totals } from "./totals.ts"
import { addTotals, afterCounting, noTotals } from "./totals.ts"

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

/** Quantiles of durations, ms: within 5% of the exact ones, or within 0.1 ms. */
export interface Quantiles {
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
}

/** The fields of a fact that are counted. Times in ms since the epoch, durations in ms. */
export type Spreadable = Pick<Fact, "attempt" | "durationMs" | "eventAt" | "kind" | "round"> & {
  readonly at?: number | undefined
}

const quantilesOf = (histogram: DurationHistogram): Quantiles | undefined => {
  const [p50, p90, p95, p99] = histogram.quantiles([0.5, 0.9, 0.95, 0.99]) ?? []
  return p50 === undefined || p90 === undefined || p95 === undefined || p99 === undefined
    ? undefined
    : { p50, p90, p95, p99 }
}

/** What a spread has counted, to be stored. */
interface SpreadParts {
  /** By group of numbers of attempts. */
  readonly attempts: Array<number>
  readonly toSuccess: DurationHistogram
  readonly latency: DurationHistogram
}

/**
 * How many attempts deliveries took, how long it took until they succeeded, and how long each
 * request took, in a memory that does not grow with their number.
 */
export class Spread {
  readonly parts: SpreadParts

  constructor(
    parts: SpreadParts = {
      attempts: groups.map(() => 0),
      toSuccess: new DurationHistogram(),
      latency: new DurationHistogram()
    }
  ) {
    this.parts = parts
  }

  /** Counts a fact. Ignores the kinds that tell of no attempt and no end. */
  note({ at, attempt = 0, durationMs, eventAt, kind, round = firstRound }: Spreadable): void {
    const isDelivered = kind === "delivered" || kind === "delivered-late"
    if (!isDelivered && kind !== "attempt-failed" && kind !== "dead-lettered") return
    const { attempts, latency, toSuccess } = this.parts
    if (kind !== "dead-lettered" && durationMs !== undefined) latency.note(durationMs)
    if (kind !== "attempt-failed") {
      const group = groups.findLastIndex(([, least]) => attempt >= least)
      attempts[group] = (attempts[group] ?? 0) + 1
    }
    // A further round begins at a time that its end does not tell.
    if (isDelivered && round === firstRound && at !== undefined && eventAt !== undefined)
      toSuccess.note(at - eventAt)
  }

  /** Adds all that another one has counted. */
  add({ parts }: Spread): void {
    for (const [group, times] of parts.attempts.entries())
      this.parts.attempts[group] = (this.parts.attempts[group] ?? 0) + times
    this.parts.toSuccess.add(parts.toSuccess)
    this.parts.latency.add(parts.latency)
  }

  /** Takes away what another one has counted, which is a part of this one. */
  subtract({ parts }: Spread): void {
    for (const [group, times] of parts.attempts.entries())
      this.parts.attempts[group] = (this.parts.attempts[group] ?? 0) - times
    this.parts.toSuccess.subtract(parts.toSuccess)
    this.parts.latency.subtract(parts.latency)
  }

  /** Number of ended deliveries by the number of attempts that they took, without empty groups. */
  get attempts(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      groups.flatMap(([name], index) => {
        const times = this.parts.attempts[index] ?? 0
        return times === 0 ? [] : [[name, times]]
      })
    )
  }

  /**
   * From when the event was stored until the answer, of deliveries that succeeded in the round that
   * routing began; undefined without any.
   */
  get toSuccess(): Quantiles | undefined {
    return quantilesOf(this.parts.toSuccess)
  }

  /** Of all attempts; undefined without any. */
  get latency(): Quantiles | undefined {
    return quantilesOf(this.parts.latency)
  }
}

/** What is told of an attempt's answer: none, or the first digit of its status. */
export const answerClasses = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"] as const

/** The fields of a fact that are summed up. */
export type Summable = Countable &
  Spreadable & {
    readonly status?: number | undefined
    /** Of an attempt without a usable answer. */
    readonly error?: unknown
  }

/** Returns where an attempt's answer is in {@link answerClasses}; undefined if it was no attempt. */
const classOf = ({ error, kind, status }: Summable): number | undefined => {
  if (kind !== "delivered" && kind !== "delivered-late" && kind !== "attempt-failed")
    return undefined
  const digit = Math.floor((status ?? 0) / 100)
  return error === undefined && digit >= 1 && digit <= 5 ? digit : 0
}

/** What facts come to: it takes the same memory however many there are, and can be added. */
export class Summary {
  totals: Totals
  readonly spread: Spread
  /** Attempts by class of their answer, in the order of {@link answerClasses}. */
  readonly answers: Array<number>

  constructor(
    totals = noTotals,
    spread = new Spread(),
    answers: Array<number> = answerClasses.map(() => 0)
  ) {
    this.totals = totals
    this.spread = spread
    this.answers = answers
  }

  /** Counts a fact. */
  note(fact: Summable): void {
    this.totals = afterCounting(this.totals, fact)
    this.spread.note(fact)
    const index = classOf(fact)
    if (index !== undefined) this.answers[index] = (this.answers[index] ?? 0) + 1
  }

  add({ answers, spread, totals }: Summary): void {
    this.totals = addTotals(this.totals, totals)
    this.spread.add(spread)
    for (const [index, times] of answers.entries())
      this.answers[index] = (this.answers[index] ?? 0) + times
  }

  /** Takes away all but the totals of another one, which is a part of this one. */
  subtractSpread({ answers, spread }: Summary): void {
    this.spread.subtract(spread)
    for (const [index, times] of answers.entries())
      this.answers[index] = (this.answers[index] ?? 0) - times
  }
}
