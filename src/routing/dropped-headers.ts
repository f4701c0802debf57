import { Effect } from "effect"
import { maxForwardedLength } from "../domain/forwarded-headers.ts"

/** Upper bound of the headers that are remembered as reported. Further ones are not reported. */
const maxReported = 1_000

/** Reports headers that cannot be forwarded. */
export interface DroppedHeaders {
  /** Called for each event; each header of a tenant is reported once. */
  readonly note: (tenant: string, name: string) => void
}

/** Makes the report of headers that cannot be forwarded: a line of the log for each. */
export const makeDroppedHeaders = Effect.gen(function* () {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const reported = new Set<string>()
  const dropped: DroppedHeaders = {
    note: (tenant, name) => {
      const known = `${tenant}/${name}`
      if (reported.has(known) || reported.size >= maxReported) return
      reported.add(known)
      run(
        Effect.logWarning(
          `a header is not forwarded where its value is none that HTTP allows: it has more than ${maxForwardedLength} characters, or control characters, or characters beyond Latin-1`,
          { tenant, header: name }
        )
      )
    }
  }
  return dropped
})
