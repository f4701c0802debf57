import { Schema } from "effect"
import { Progress } from "./delivery.ts"
import type { Place } from "./fact.ts"
import { Fact } from "./fact.ts"
import { DeadReason, ErrorClass } from "./outcome.ts"
import { Types } from "./settings/endpoint-table.ts"
import { Timestamp } from "./timestamp.ts"
import { TypeIndex } from "./type-filter.ts"

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

/** Which deliveries that wait for their next attempt are meant; all conditions hold at once. */
export const WaitingFilter = Schema.Struct({
  /** NATS wildcards, of which one must match the event's type. */
  types: Schema.optionalKey(Types),
  /** The last answer's status, or its class: `503`, `5xx`. */
  status: Schema.optionalKey(Schema.String),
  /** The class of the last attempt's error. */
  error: Schema.optionalKey(ErrorClass),
  /** Attempted last then or later. */
  since: Schema.optionalKey(Timestamp),
  /** Attempted last then or earlier. */
  until: Schema.optionalKey(Timestamp)
})
export type WaitingFilter = typeof WaitingFilter.Type

/** Returns what tells whether a delivery of a type is meant that has come as far as its progress says. */
export const waitingMatcher = ({ error, since, status, types, until }: WaitingFilter) => {
  const index = new TypeIndex<true>()
  index.add(types ?? [], true)
  return (type: string, { lastAttemptAt, lastErrorClass, lastStatus }: Progress): boolean => {
    const last = String(lastStatus ?? "")
    return (
      (types === undefined || index.match(type).size > 0) &&
      (status === undefined || last === status || `${last.slice(0, 1)}xx` === status) &&
      (error === undefined || lastErrorClass === error) &&
      (since === undefined || (lastAttemptAt !== undefined && lastAttemptAt >= since)) &&
      (until === undefined || (lastAttemptAt !== undefined && lastAttemptAt <= until))
    )
  }
}
