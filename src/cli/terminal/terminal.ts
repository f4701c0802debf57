import { Effect, Stdio } from "effect"
import { visible } from "../format/visible.ts"
import { Output } from "./output.ts"

/** Returns true if stdout is a terminal that supports colours and NO_COLOR is not set. */
export const coloured = (): boolean => process.stdout.isTTY && process.stdout.hasColors()

/** Prints a remark about the results on stderr. */
export const remark = (text: string): Effect.Effect<void> =>
  Effect.map(Output, ({ stderr }) => {
    stderr.write(`${visible(text)}\n`)
  })

/** Whether somebody is at a terminal who can be asked. */
export const canAsk = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  return (yield* stdio.stdinIsTerminal) && (yield* stdio.stdoutIsTerminal)
})
