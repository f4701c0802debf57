import { Effect } from "effect"
import { countText } from "../../operations/text/number-format.ts"
import { cutTo } from "../format/screen.ts"
import { barLine } from "./repartition-bar.ts"
import { remark } from "./terminal.ts"

/** Interval between updates on a terminal, and between lines without one, ms. */
const redrawMs = 200
const lineMs = 10_000

/** Number of messages read, and in total. */
export interface ReadingProgress {
  readonly done: number
  readonly all: number
}

const erase = "\r\u001b[2K"

/** Erases the bar before other output. The bar is redrawn below it. */
export const clearProgress = Effect.sync(() => {
  if (process.stderr.isTTY) process.stderr.write(erase)
})

/**
 * Runs a long read and shows its progress: a bar on a terminal, otherwise a line now and then.
 *
 * @param look returns undefined while the total is unknown.
 */
export const showingProgress = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  look: () => ReadingProgress | undefined
): Effect.Effect<A, E, R> => Effect.raceFirst(work, process.stderr.isTTY ? bar(look) : lines(look))

const lines = (look: () => ReadingProgress | undefined) =>
  Effect.forever(
    Effect.delay(
      Effect.suspend(() => {
        const read = look()
        return read === undefined
          ? Effect.void
          : remark(`read ${countText(read.done)} of ${countText(read.all)} messages`)
      }),
      lineMs
    )
  )

const bar = (look: () => ReadingProgress | undefined) => {
  const draw = Effect.sync(() => {
    const read = look()
    if (read === undefined) return
    const line = barLine(read.done, read.all, "messages read")
    process.stderr.write(`${erase}${cutTo((process.stderr.columns ?? 80) - 1, line)}`)
  })
  return Effect.ensuring(Effect.forever(Effect.delay(draw, redrawMs)), clearProgress)
}
