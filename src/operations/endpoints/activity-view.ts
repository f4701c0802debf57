import { Schema } from "effect"
import type { EndpointNow } from "../../delivery/introspection/endpoint-activity.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { shareOf } from "../text/number-format.ts"

/** Attempts within the last hour. */
export const LastHour = Schema.Struct({
  /** Start of the count, ms since the epoch: later than an hour ago if the partition changed owner. */
  since: Timestamp,
  attempts: Schema.Int,
  delivered: Schema.Int,
  /** From 0 to 1; null without attempts. */
  successRate: Schema.NullOr(Schema.Number),
  /** Duration of an attempt, ms. */
  p50Ms: Schema.NullOr(Schema.Number),
  p95Ms: Schema.NullOr(Schema.Number)
})
export type LastHour = typeof LastHour.Type

/** An endpoint's current activity. What only its partition's owner knows is null if none answers. */
export const ActivityView = Schema.Struct({
  partition: Schema.Int,
  /** The worker that owns the partition. */
  owner: Schema.NullOr(Schema.String),
  inFlight: Schema.NullOr(Schema.Int),
  /** Deliveries by the place where they wait. Those in memory or in flight are in a stream, too. */
  waiting: Schema.Struct({
    memory: Schema.NullOr(Schema.Int),
    queue: Schema.Int,
    /** Null if there are too many to count. */
    schedules: Schema.NullOr(Schema.Int),
    backlog: Schema.Int
  }),
  lastHour: Schema.NullOr(LastHour)
})
export type ActivityView = typeof ActivityView.Type

/** Returns an endpoint's current activity. */
export const activityView = ({ owner, partition, answer, waiting }: EndpointNow): ActivityView => ({
  partition,
  owner: owner ?? null,
  inFlight: answer?.inFlight ?? null,
  waiting: {
    memory: answer?.inLine ?? null,
    queue: waiting.queue,
    schedules: waiting.schedules ?? null,
    backlog: waiting.backlog
  },
  lastHour:
    answer === undefined
      ? null
      : {
          since: answer.since,
          attempts: answer.attempts,
          delivered: answer.delivered,
          successRate: shareOf(answer.delivered, answer.attempts),
          p50Ms: answer.p50Ms ?? null,
          p95Ms: answer.p95Ms ?? null
        }
})
