import { Schema } from "effect"
import { Progress } from "../../domain/delivery.ts"
import { DeadReason } from "../../domain/outcome.ts"
import type { Fate } from "../../history/dead-fates.ts"
import type { DeadLetter } from "../../history/dead-letters.ts"
import type { LateDelivery } from "../../history/late-deliveries.ts"

const { nextAttemptAt: _, ...attempted } = Progress.fields

/** The round that a redelivery of a dead letter began. Times in ms since the epoch. */
export const Redelivery = Schema.Struct({
  round: Schema.String,
  at: Schema.Number,
  by: Schema.optional(Schema.String),
  /** `waiting` while the round is open, otherwise how it ended. */
  outcome: Schema.Literals(["waiting", "delivered", "delivered-late", "dead-lettered"]),
  endedAt: Schema.optional(Schema.Number),
  /** Id of the new dead letter, if the round was dead-lettered. */
  dead: Schema.optional(Schema.Int)
})
export type Redelivery = typeof Redelivery.Type

/** A delivery that ended without success. Times in ms since the epoch. */
export const DeadLetterView = Schema.Struct({
  id: Schema.Int,
  tenant: Schema.String,
  endpoint: Schema.String,
  /** The event's id. */
  event: Schema.String,
  eventSeq: Schema.Int,
  eventAt: Schema.Number,
  type: Schema.String,
  round: Schema.String,
  reason: DeadReason,
  ...attempted,
  deadline: Schema.Number,
  deadAt: Schema.Number,
  /** The place that its message was moved from. */
  origin: Schema.optionalKey(Schema.String),
  redelivered: Schema.optionalKey(Redelivery),
  /** A former owner recorded a success: the receiver has it. */
  deliveredLate: Schema.optionalKey(
    Schema.Struct({ at: Schema.Number, worker: Schema.optional(Schema.String) })
  )
})
export type DeadLetterView = typeof DeadLetterView.Type

/** Returns a dead letter, what came of sending it again, and its late success. */
export const deadLetterView = (
  { deadAt, delivery, id, reason }: DeadLetter,
  fate?: Fate,
  late?: LateDelivery
): DeadLetterView => {
  const { deadline, endpoint, event, eventAt, eventSeq, origin, progress, round, tenant, type } =
    delivery
  const { nextAttemptAt: _, ...attempts } = progress
  return {
    id,
    tenant,
    endpoint,
    event,
    eventSeq,
    eventAt,
    type,
    round,
    reason,
    ...attempts,
    deadline,
    deadAt,
    ...(origin === undefined ? {} : { origin }),
    ...(fate === undefined ? {} : { redelivered: fate }),
    ...(late === undefined ? {} : { deliveredLate: late })
  }
}
