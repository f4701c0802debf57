import type { Spreadable } from "./spread.ts"
import { Spread } from "./spread.ts"
import type { Countable, Totals } from "./totals.ts"
import { addTotals, afterCounting, noTotals } from "./totals.ts"

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
