import { Effect } from "effect"
import { elapsedMs } from "../../time/elapsed.ts"
import { LineBudget, summaryText } from "../format/summary-lines.ts"
import { visible } from "../format/visible.ts"
import { Output } from "./output.ts"

const secondMs = "1 second"
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
  }).pipe(Effect.delay(secondMs), Effect.forever, Effect.forkScoped)
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
