import { Effect, Schema } from "effect"
import { Refused } from "./refused.ts"

/** Whoever read the results has gone away (`| head`): an end, but no failure. */
export class OutputClosed extends Schema.TaggedError<OutputClosed>()("OutputClosed", {}) {}

/** Writes one line of results and waits until it is handed over. */
export const print = (line: string): Effect.Effect<void, OutputClosed | Refused> =>
  Effect.callback((resume) => {
    process.stdout.write(`${line}\n`, (error) => resume(written(error)))
  })

const written = (error: (Error & { readonly code?: string }) | null | undefined) => {
  if (error === undefined || error === null) return Effect.void
  return error.code === "EPIPE"
    ? Effect.fail(new OutputClosed())
    : Effect.fail(new Refused({ message: `cannot write the results: ${error.message}` }))
}
