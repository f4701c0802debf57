import { Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readValue, writeValue } from "../../broker/values.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { timers } from "../../time/timers.ts"

/** What the last audit of all tenants came to. Times in ms since the epoch. */
export const LastAudit = Schema.Struct({
  /** When it ended. */
  at: Timestamp,
  verdict: Schema.Literals(["clean", "problems", "unvouched"]),
  /** Number of problems. */
  problems: Schema.Int
})
export type LastAudit = typeof LastAudit.Type

/** Key in the bucket of workers, which holds what all need to know of each other. */
const key = "audit.last"
/** An auditor without permission to write gets no answer, ms. */
const maxWriteMs = 1_000

const Stored = Schema.fromJsonString(LastAudit)
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeSync(Stored)

/** Returns the last audit; undefined if none was run, or it cannot be read. */
export const readLastAudit = Effect.gen(function* () {
  const { names } = yield* Broker
  const entry = yield* readValue(names.buckets.workers, key)
  return entry === undefined ? undefined : Option.getOrUndefined(decode(entry.string()))
})

/**
 * Notes what an audit of all tenants came to, for whoever watches that audits are run. If that is
 * not possible, it is left out.
 *
 * @param problems how many it found.
 */
export const noteAudit = Effect.fnUntraced(function* (
  verdict: LastAudit["verdict"],
  problems: number
) {
  const { names } = yield* Broker
  const audit: LastAudit = { at: timers.wallMs(), verdict, problems }
  yield* writeValue(names.buckets.workers, key, encode(audit)).pipe(
    Effect.timeoutOption(maxWriteMs),
    Effect.catch((error) =>
      Effect.logDebug("the audit's verdict could not be noted", { why: error.message })
    )
  )
})
