import { Schema } from "effect"
import { Progress } from "./delivery.ts"
import { Fact, type Place } from "./fact.ts"
import { DeadReason } from "./outcome.ts"

/** A decision about a delivery that did not succeed. `at` in ms since the epoch. */
export const Decision = Schema.Union([
  Schema.TaggedStruct("Nak", { at: Schema.Number }),
  Schema.TaggedStruct("Schedule", { at: Schema.Number }),
  Schema.TaggedStruct("Dead", { reason: DeadReason }),
  /**
   * No decision yet: an attempt is marked because its message may have crashed earlier workers.
   * `times` counts the marked attempts.
   */
  Schema.TaggedStruct("Trying", { times: Schema.Int })
])
export type Decision = typeof Decision.Type

/**
 * Returns the key of what is decided about a message, or about one of its entries, in the retries
 * bucket: `<stream>.<sequence>[-<entry>].<ms>`. A sequence alone is no identity: a truncated stream
 * gives it to another message.
 */
export const retryRecordKey = ({ at, entry, seq, stream }: Place): string =>
  entry === undefined ? `${stream}.${seq}.${at}` : `${stream}.${seq}-${entry}.${at}`

/**
 * The value under a {@link retryRecordKey} in the retries bucket. It is stored before a decision is applied: after a crash, the same decision is
 * applied instead of a new one.
 */
export const RetryRecord = Schema.Struct({
  v: Schema.Literal(1),
  progress: Progress,
  decision: Decision,
  decidedAt: Schema.Number,
  /**
   * The fact of the attempt that led to the decision, and the message id under which it is stored.
   */
  outcome: Schema.optionalKey(Schema.Struct({ fact: Fact, id: Schema.String }))
})
export type RetryRecord = typeof RetryRecord.Type
