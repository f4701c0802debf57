import { Effect } from "effect"
import { visible } from "./visible.ts"

/** Whether results are read on a terminal that shows colours and is allowed to (NO_COLOR). */
export const coloured = (): boolean => process.stdout.isTTY && process.stdout.hasColors()

/** Says something about the results that is none of them, on stderr. */
export const remark = (text: string): Effect.Effect<void> =>
  Effect.sync(() => {
    process.stderr.write(`${visible(text)}\n`)
  })
