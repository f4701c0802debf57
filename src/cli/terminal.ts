import { Effect } from "effect"

/** Whether results are read on a terminal that shows colours and is allowed to (NO_COLOR). */
export const coloured = (): boolean => process.stdout.isTTY && process.stdout.hasColors()

/** Says something about the results that is none of them, on stderr. */
export const remark = (text: string): Effect.Effect<void> =>
  Effect.sync(() => {
    process.stderr.write(`${text}\n`)
  })
