import { Schema } from "effect"
import { Timestamp } from "./timestamp.ts"

/*
 * The parts of an installation's state, as it is read and as people see it. What is not known, as no
 * owner answers, is null. Times in ms since the epoch.
 */

export const Count = Schema.NullOr(Schema.Int)
/** Bytes, and their limit; null also where there is none. */
export const Filled = Schema.Struct({
  bytes: Count.annotateKey({ description: "Size in bytes; null if it is not known." }),
  limitBytes: Count.annotateKey({
    description: "The most that there may be, bytes; null without a limit."
  })
})
/** The size of a stream, and when its oldest message was stored; null also where it is empty. */
export const StreamSpace = Schema.Struct({
  ...Filled.fields,
  oldestAt: Schema.NullOr(Timestamp).annotateKey({
    description: "When the oldest message was stored; null without any."
  })
})

/** How many deliveries wait, by where. */
export const Waiting = {
  new: Count.annotateKey({ description: "Not delivered by the broker yet." }),
  ackPending: Count.annotateKey({ description: "Delivered by the broker and not acknowledged." }),
  inFlight: Count.annotateKey({ description: "Requests that are under way." }),
  inLine: Count.annotateKey({ description: "Deliveries that wait in the memory of their owner." }),
  retries: Count.annotateKey({ description: "Those of `ackPending` that wait for a retry." }),
  scheduled: Count.annotateKey({ description: "Retries that wait as schedules of the broker." }),
  backlog: Count.annotateKey({ description: "Deliveries that wait in backlogs." }),
  unreadable: Count.annotateKey({ description: "Messages that no owner can read." })
}

export const PartitionState = Schema.Struct({
  partition: Schema.Int.annotateKey({ description: "The index of the partition." }),
  owner: Schema.NullOr(Schema.String).annotateKey({ description: "The worker that owns it." }),
  unownedSince: Schema.optionalKey(Schema.NullOr(Timestamp)).annotateKey({
    description: "Present if nobody owns it."
  }),
  answers: Schema.Boolean.annotateKey({ description: "Whether its owner answers." }),
  ...Waiting,
  endpointsWithBacklog: Count.annotateKey({ description: "Endpoints that have a backlog." })
})

/** The delivery that has waited longest, since its round began. */
export const OldestDelivery = Schema.Struct({
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  place: Schema.Literals(["queue", "schedule", "backlog"]).annotateKey({
    description: "Where the delivery waits."
  }),
  since: Timestamp.annotateKey({ description: "When its round began." })
})

/** Endpoints by state. A disabled, suspended or paused endpoint counts in no other state. */
export const EndpointCounts = Schema.Struct({
  total: Schema.Int.annotateKey({ description: "All endpoints." }),
  closed: Schema.Int.annotateKey({ description: "Endpoints whose circuit is closed." }),
  open: Schema.Int.annotateKey({ description: "Endpoints whose circuit is open." }),
  halfOpen: Schema.Int.annotateKey({ description: "Endpoints whose circuit is half-open." }),
  paused: Schema.Int.annotateKey({ description: "Endpoints that are paused." }),
  suspended: Schema.Int.annotateKey({ description: "Endpoints that are suspended." }),
  disabled: Schema.Int.annotateKey({ description: "Endpoints that are disabled." }),
  unreadable: Schema.Int.annotateKey({ description: "How many cannot be read." }),
  withBacklog: Count.annotateKey({
    description: "Endpoints that have a backlog; null if not all backlogs could be counted."
  })
})

export const DeadLetterCounts = Schema.Struct({
  stored: Count.annotateKey({ description: "How many are stored." }),
  open: Count.annotateKey({
    description:
      "Neither sent again nor delivered late; also null where that takes too long to count."
  }),
  lastHour: Count.annotateKey({ description: "Dead letters of the last hour." }),
  bytes: Count.annotateKey({ description: "Size in bytes." }),
  limitBytes: Count.annotateKey({ description: "The most that there may be, bytes." }),
  byTenant: Schema.NullOr(Schema.Record(Schema.String, Schema.Int)).annotateKey({
    description: "Dead letters by tenant."
  })
})

/** The events, and how far their routing is. */
export const EventCounts = Schema.Struct({
  stored: Count.annotateKey({ description: "How many are stored." }),
  waitingForRouter: Count.annotateKey({ description: "Events that no router has taken yet." }),
  inRouter: Count.annotateKey({ description: "Events that a router is working on." }),
  oldestUnroutedAt: Schema.NullOr(Timestamp).annotateKey({
    description: "When the oldest event was stored that is not routed; null also if all are."
  }),
  lost: Schema.Int.annotateKey({
    description: "Events that left the stream before they were routed."
  })
})
