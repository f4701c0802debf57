import { Schema } from "effect"
import { Timestamp } from "./timestamp.ts"

/*
 * The parts of an installation's state, as it is read and as people see it. What is not known, as no
 * owner answers, is null. Times in ms since the epoch.
 */

export const Count = Schema.NullOr(Schema.Int)
/** Bytes, and their limit; null also where there is none. */
export const Filled = Schema.Struct({ bytes: Count, limitBytes: Count })
/** The size of a stream, and when its oldest message was stored; null also where it is empty. */
export const StreamSpace = Schema.Struct({
  ...Filled.fields,
  oldestAt: Schema.NullOr(Timestamp)
})

/** How many deliveries wait, by where. */
export const Waiting = {
  /** Not delivered by the broker yet. */
  new: Count,
  /** Delivered by the broker and not acknowledged. */
  ackPending: Count,
  inFlight: Count,
  inLine: Count,
  /** Those of `ackPending` that wait for a retry. */
  retries: Count,
  /** Retries that wait as schedules of the broker. */
  scheduled: Count,
  backlog: Count,
  /** Messages that no owner can read. */
  unreadable: Count
}

export const PartitionState = Schema.Struct({
  partition: Schema.Int,
  owner: Schema.NullOr(Schema.String),
  /** Present if nobody owns it. */
  unownedSince: Schema.optionalKey(Schema.NullOr(Timestamp)),
  /** Whether its owner answers. */
  answers: Schema.Boolean,
  ...Waiting,
  endpointsWithBacklog: Count
})

/** The delivery that has waited longest, since its round began. */
export const OldestDelivery = Schema.Struct({
  tenant: Schema.String,
  endpoint: Schema.String,
  place: Schema.Literals(["queue", "schedule", "backlog"]),
  since: Timestamp
})

/** Endpoints by state. A disabled, suspended or paused endpoint counts in no other state. */
export const EndpointCounts = Schema.Struct({
  total: Schema.Int,
  closed: Schema.Int,
  open: Schema.Int,
  halfOpen: Schema.Int,
  paused: Schema.Int,
  suspended: Schema.Int,
  disabled: Schema.Int,
  unreadable: Schema.Int,
  withBacklog: Schema.Int
})

export const DeadLetterCounts = Schema.Struct({
  stored: Count,
  /** Neither sent again nor delivered late; also null where that takes too long to count. */
  open: Count,
  lastHour: Count,
  bytes: Count,
  limitBytes: Count,
  byTenant: Schema.NullOr(Schema.Record(Schema.String, Schema.Int))
})

/** The events, and how far their routing is. */
export const EventCounts = Schema.Struct({
  stored: Count,
  waitingForRouter: Count,
  inRouter: Count,
  /** When the oldest event was stored that is not routed; null also if all are. */
  oldestUnroutedAt: Schema.NullOr(Timestamp),
  /** Events that left the stream before they were routed. */
  lost: Schema.Int
})
