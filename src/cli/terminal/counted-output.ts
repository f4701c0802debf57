import { Effect } from "effect"
import { countText } from "../../text/quantities.ts"
import { elapsedMs } from "../../time/elapsed.ts"
import { visible } from "../format/visible.ts"
import { Output } from "./stdout.ts"

/** Lines of a second that are printed one by one; beyond it they are summed up. */
const maxLinesPerSecond = 20
const secondMs = 1_000

/** What happened in one second. */
interface Summary {
  readonly count: number
  /** How often each kind occurred. */
  readonly kinds: ReadonlyMap<string, number>
}

/**
 * Decides whether what happens is printed line by line, or summed up: above 20 a second. Printing
 * costs more than what it tells of then, and nobody can read it.
 */
export class LineBudget {
  #second = Number.NEGATIVE_INFINITY
  #count = 0
  #kinds = new Map<string, number>()
  #isSumming = false

  /**
   * Notes one thing that happened.
   *
   * @param now ms of a monotonic clock.
   * @returns true where it is to be printed by itself.
   */
  note(kind: string, now: number): boolean {
    if (this.#isSumming) {
      this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1)
      this.#count++
      return false
    }
    if (now - this.#second >= secondMs) {
      this.#second = now
      this.#count = 0
    }
    this.#count++
    if (this.#count <= maxLinesPerSecond) return true
    this.#isSumming = true
    this.#count = 1
    this.#kinds = new Map([[kind, 1]])
    return false
  }

  /** True while what happens is summed up. */
  get isSumming(): boolean {
    return this.#isSumming
  }

  /**
   * Returns what was summed up since the last call; undefined if nothing was, or while lines are
   * printed. Called once a second: after one with few enough, lines are printed again.
   */
  takeSummary(): Summary | undefined {
    if (!this.#isSumming) return undefined
    const summary = { count: this.#count, kinds: this.#kinds }
    this.#isSumming = summary.count > maxLinesPerSecond
    this.#count = 0
    this.#second = Number.NEGATIVE_INFINITY
    this.#kinds = new Map()
    return summary.count === 0 ? undefined : summary
  }
}

/** Returns a summary as one line: `1,204 in a second: 1,200 delivered, 4 attempt-failed`. */
export const summaryText = ({ count, kinds }: Summary): string => {
  const each = [...kinds]
    .toSorted(([, one], [, other]) => other - one)
    .map(([kind, many]) => `${countText(many)} ${kind}`)
  return `${countText(count)} in a second: ${each.join(", ")}`
}

const summaryEvery = "1 second"
/** Moves to the beginning of a terminal's line, and clears it. */
const rewrite = "\r\u001b[K"

/**
 * Prints what happens line by line, and above 20 lines a second sums it up once a second: in place
 * on a terminal, else as a line each.
 */
export const makeCountedOutput = Effect.gen(function* () {
  const { stdout } = yield* Output
  const budget = new LineBudget()
  const isTerminal = process.stdout.isTTY === true
  let isInPlace = false
  yield* Effect.sync(() => {
    const summary = budget.takeSummary()
    if (summary === undefined) return
    const text = visible(summaryText(summary))
    stdout.write(isTerminal ? `${isInPlace ? rewrite : ""}${text}` : `${text}\n`)
    isInPlace = isTerminal
  }).pipe(Effect.delay(summaryEvery), Effect.forever, Effect.forkScoped)
  return {
    /** True where what is of this kind is to be printed by itself now. */
    note: (kind: string): boolean => {
      const isLine = budget.note(kind, elapsedMs())
      if (isLine && isInPlace) {
        stdout.write("\n")
        isInPlace = false
      }
      return isLine
    }
  }
})
