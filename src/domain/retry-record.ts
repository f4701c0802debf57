import { Schema } from "effect"
import type { DeliveryIdentity } from "./delivery.ts"
import { Progress } from "./delivery.ts"
import { Fact } from "./fact.ts"
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
 * The value under `<stream>.<sequence>` in the retries bucket. It is stored before a decision is
 * applied: after a crash, the same decision is applied instead of a new one.
 */
export const RetryRecord = Schema.Struct({
  v: Schema.Literal(1),
  /**
   * Identity of the delivery, checked on reading: a truncated stream reuses the message's sequence.
   */
  eventSeq: Schema.Int,
  eventAt: Schema.Number,
  tenant: Schema.String,
  endpoint: Schema.String,
  round: Schema.String,
  progress: Progress,
  decision: Decision,
  decidedAt: Schema.Number,
  /**
   * The fact of the attempt that led to the decision, and the message id under which it is stored.
   */
  outcome: Schema.optionalKey(Schema.Struct({ fact: Fact, id: Schema.String }))
})
export type RetryRecord = typeof RetryRecord.Type

/** True for a record of this delivery and round. */
export const isRecordOf = (record: DeliveryIdentity, delivery: DeliveryIdentity): boolean =>
  record.eventSeq === delivery.eventSeq &&
  record.eventAt === delivery.eventAt &&
  record.round === delivery.round &&
  record.tenant === delivery.tenant &&
  record.endpoint === delivery.endpoint
