import { Context, type Effect, Schema } from "effect"
import { ErrorClass } from "../domain/outcome.ts"
import type { Invalid } from "../domain/problem.ts"
import { present } from "../domain/record.ts"
import { Timestamp } from "../domain/timestamp.ts"
import { Token } from "../domain/token.ts"
import { LoggedSums, type SumsQuery } from "./log-sums.ts"

/** The most rows of a page, and how many it has by default. */
export const maxPageRows = 200
export const defaultPageRows = 50

/**
 * What a round of a delivery came to: it has not ended; a success; no success; an operator removed
 * its dead letter; or the plan left the endpoint out, so that nothing was sent.
 */
export const DeliveryState = Schema.Literals([
  "waiting",
  "delivered",
  "dead-lettered",
  "discarded",
  "skipped"
])
export type DeliveryState = typeof DeliveryState.Type

const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxPageRows }))
const Text = Schema.NonEmptyString.check(Schema.isMaxLength(1_024))

/** How many values a filter has at most. */
const maxFilterValues = 20

/** A filter of one value or more, of which any holds. */
export const several = <S extends Schema.Top>(schema: S) =>
  Schema.optionalKey(
    Schema.Array(schema).check(
      Schema.makeFilter(({ length }: ReadonlyArray<unknown>) =>
        length >= 1 && length <= maxFilterValues
          ? undefined
          : `must be 1 to ${maxFilterValues} values`
      )
    )
  )

/** What an attempt came to. */
const AttemptOutcome = Schema.Literals(["success", "failure"])

/** What finds attempts that got no complete answer, in place of a status. */
export const noStatus = "none"

const Status = Schema.String.check(
  Schema.makeFilter((text: string) =>
    text === noStatus || /^[1-5](\d\d|xx)$/.test(text)
      ? undefined
      : "must be an HTTP status such as 503, a class of them such as 5xx, or none"
  )
)

const pageFields = {
  tenant: Schema.optionalKey(Token).annotateKey({ description: "(Default: every tenant)" }),
  since: Schema.optionalKey(Timestamp),
  until: Schema.optionalKey(Timestamp),
  cursor: Schema.optionalKey(Schema.String).annotateKey({
    description: "The `cursor` or `previous` of another page."
  }),
  limit: Schema.optionalKey(Limit).annotateKey({ description: "(Default: 50)" })
}

const typesPattern = "^(?:[^*>]*(?:\\*|\\.>)?|>)$"
const isType = new RegExp(typesPattern)

/** An event type, or what the types begin with that are meant. The log compares no single tokens. */
const Types = several(
  Text.check(
    Schema.makeFilter(
      (text: string) =>
        isType.test(text)
          ? undefined
          : "must be an event type such as invoice.paid, or the beginning of types with * after it, such as invoice.*",
      { toJsonSchema: () => ({ pattern: typesPattern }) }
    )
  )
)

/**
 * Which rows to find; all conditions hold at once, and of several values of one any. Times in ms since
 * the epoch, both inclusive: when a round ended; of one that waits, when it began.
 */
export const DeliveryQuery = Schema.Struct({
  ...pageFields,
  endpoint: several(Token),
  event: Schema.optionalKey(Text).annotateKey({
    description: "The event's id, exactly; or its beginning, if it ends with `*`."
  }),
  type: Types.annotateKey({
    description:
      "The event's type, exactly; or its beginning, if it ends with `*`, such as `invoice.*`."
  }),
  state: several(DeliveryState),
  /** Of the last answer: a status, a class of them, or `none`. */
  status: several(Status),
  /** Of the last attempt, if it got no usable answer. */
  error: several(ErrorClass)
})
export type DeliveryQuery = typeof DeliveryQuery.Type

/** Which attempts to find, as in DeliveryQuery; times of when they were made. */
export const AttemptQuery = Schema.Struct({
  ...pageFields,
  endpoint: several(Token),
  event: Schema.optionalKey(Text).annotateKey({ description: "The id of the event." }),
  type: Types.annotateKey({ description: "The type of the event." }),
  outcome: Schema.optionalKey(AttemptOutcome).annotateKey({
    description: "Whether the delivery succeeded by it."
  }),
  status: several(Status),
  error: several(ErrorClass)
})
export type AttemptQuery = typeof AttemptQuery.Type

/** Which events to find, as in DeliveryQuery; times of when they were stored. */
export const EventQuery = Schema.Struct({
  ...pageFields,
  type: Types.annotateKey({ description: "The type of the event." }),
  /** How it came: see domain/origin.ts. Or the beginning of that, if it ends with `*`. */
  channel: several(Text)
})
export type EventQuery = typeof EventQuery.Type

/** Whose a row is. */
const roundFields = {
  delivery: Schema.String.annotateKey({ description: "`<event id>.<endpoint id>`" }),
  round: Schema.String.annotateKey({
    description: "Which round of the delivery: `0` is the first."
  }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  event: Schema.String.annotateKey({ description: "The event's id." }),
  eventSeq: Schema.Int.annotateKey({ description: "The event's sequence in EVENTS." }),
  eventAt: Timestamp.annotateKey({ description: "When the event was stored." }),
  type: Schema.NullOr(Schema.String).annotateKey({ description: "The type of the event." })
}

/** One round of a delivery. Times in ms since the epoch. */
export const DeliveryRow = Schema.Struct({
  ...roundFields,
  state: DeliveryState,
  late: Schema.Boolean.annotateKey({
    description: "The success was recorded by a worker that no longer owned the partition."
  }),
  attempts: Schema.Int.annotateKey({ description: "The highest number of an attempt." }),
  probes: Schema.Int.annotateKey({ description: "How many of the recorded attempts were probes." }),
  status: Schema.NullOr(Schema.Int).annotateKey({
    description: "The status of the success, or else of the last recorded attempt."
  }),
  error: Schema.NullOr(Schema.String).annotateKey({
    description: "The class of that attempt's error."
  }),
  reason: Schema.NullOr(Schema.String).annotateKey({
    description: "Why it was dead-lettered or skipped."
  }),
  beganAt: Schema.NullOr(Timestamp).annotateKey({
    description: "Null if that is no longer in the history."
  }),
  at: Timestamp.annotateKey({ description: "When it ended; of one that waits, when it began." }),
  durationMs: Schema.NullOr(Schema.Number).annotateKey({
    description: "How long that attempt took, ms."
  }),
  nextAttemptAt: Schema.NullOr(Timestamp).annotateKey({
    description: "When the next attempt is due, of a delivery that waits for one."
  }),
  dead: Schema.NullOr(Schema.Int).annotateKey({
    description: "Sequence in DEAD of the dead letter that it left."
  }),
  redeliveredAs: Schema.NullOr(Schema.String).annotateKey({
    description: "The round that sent its dead letter again."
  }),
  seq: Schema.Int.annotateKey({
    description: "The fact that ended it, or that began it if it waits: its sequence in HISTORY."
  })
})
export type DeliveryRow = typeof DeliveryRow.Type

/** How far the projection is behind the history. */
export const Lag = Schema.Struct({
  facts: Schema.Int.annotateKey({ description: "Facts that are stored and not yet seen." }),
  ms: Schema.Number.annotateKey({
    description:
      "How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s."
  })
})
export type Lag = typeof Lag.Type

/** The fields of a page other than its rows, which are newest first. */
const pageEnds = {
  searchedUntil: Schema.NullOr(Timestamp).annotateKey({
    description:
      "A page ends after 40 ms of searching. It then has what was found among all that is newer than this, or older on the way back; null if it is full or nothing is left."
  }),
  cursor: Schema.NullOr(Schema.String).annotateKey({
    description: "For the next page, of what is older; null if there is none."
  }),
  previous: Schema.NullOr(Schema.String).annotateKey({
    description: "For the previous page, of what is newer; null if there is none."
  })
}
export type PageEnds = Schema.Struct.Type<typeof pageEnds>

export const DeliveryPage = Schema.Struct({
  deliveries: Schema.Array(DeliveryRow),
  ...pageEnds,
  lag: Lag.annotateKey({ description: "How far the log is behind the history." })
})
export type DeliveryPage = typeof DeliveryPage.Type

/** One attempt of a delivery. Times in ms since the epoch. */
export const AttemptRow = Schema.Struct({
  ...roundFields,
  number: Schema.Int.annotateKey({ description: "Its number within its round, from 1." }),
  at: Timestamp.annotateKey({ description: "When it was made." }),
  outcome: AttemptOutcome.annotateKey({ description: "Whether the delivery succeeded by it." }),
  isProbe: Schema.Boolean.annotateKey({
    description: "It was sent while the circuit was half-open."
  }),
  status: Schema.NullOr(Schema.Int).annotateKey({
    description: "The status of the complete answer; null without one."
  }),
  error: Schema.NullOr(
    Schema.Struct({
      class: Schema.String.annotateKey({ description: "The class of the error." }),
      message: Schema.String.annotateKey({ description: "What the error says." })
    })
  ).annotateKey({ description: "Why there was no complete answer; null if there was one." }),
  durationMs: Schema.NullOr(Schema.Number).annotateKey({
    description: "How long the request took, ms."
  }),
  nextAttemptAt: Schema.NullOr(Timestamp).annotateKey({
    description: "When the next attempt is due."
  }),
  worker: Schema.NullOr(Schema.String).annotateKey({ description: "The id of the worker." }),
  seq: Schema.Int.annotateKey({
    description: "Sequence in HISTORY of its fact, which has the answer."
  })
})
export type AttemptRow = typeof AttemptRow.Type

export const AttemptPage = Schema.Struct({
  attempts: Schema.Array(AttemptRow),
  ...pageEnds,
  lag: Lag.annotateKey({ description: "How far the log is behind the history." })
})
export type AttemptPage = typeof AttemptPage.Type

/** An event. Times in ms since the epoch. */
export const EventRow = Schema.Struct({
  id: Schema.String.annotateKey({ description: "Its id." }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  seq: Schema.Int.annotateKey({ description: "Its sequence in EVENTS." }),
  at: Timestamp.annotateKey({ description: "When it was stored." }),
  type: Schema.NullOr(Schema.String).annotateKey({ description: "The type of the event." }),
  channel: Schema.NullOr(Schema.String).annotateKey({
    description: "How it came; null if that is not known."
  }),
  /** Rounds of its deliveries, by their states. */
  rounds: Schema.Struct({
    waiting: Schema.Int.annotateKey({ description: "Deliveries that wait." }),
    delivered: Schema.Int.annotateKey({ description: "Deliveries that ended with success." }),
    deadLettered: Schema.Int.annotateKey({ description: "Deliveries that ended as dead letters." }),
    discarded: Schema.Int.annotateKey({ description: "Dead letters that were discarded." }),
    skipped: Schema.Int.annotateKey({ description: "Endpoints that the plan left out." })
  })
})
export type EventRow = typeof EventRow.Type

export const EventPage = Schema.Struct({
  events: Schema.Array(EventRow),
  ...pageEnds,
  lag: Lag.annotateKey({ description: "How far the log is behind the history." })
})
export type EventPage = typeof EventPage.Type

/** One recorded attempt. The answer's snippet is in the history, under `seq`. */
export const LoggedAttempt = Schema.Struct({
  number: Schema.Int,
  seq: Schema.Int.annotateKey({ description: "Sequence in HISTORY of its fact." }),
  at: Timestamp,
  isSuccess: Schema.Boolean,
  isProbe: Schema.Boolean,
  status: Schema.NullOr(Schema.Int).annotateKey({
    description: "The status of the complete answer; null without one."
  }),
  error: Schema.NullOr(
    Schema.Struct({
      class: ErrorClass.annotateKey({ description: "The class of the error." }),
      message: Schema.String.annotateKey({ description: "What the error says." })
    })
  ).annotateKey({ description: "Why there was no complete answer; null if there was one." }),
  durationMs: Schema.NullOr(Schema.Number).annotateKey({
    description: "How long the request took, ms."
  }),
  nextAttemptAt: Schema.NullOr(Timestamp).annotateKey({
    description: "When the next attempt is due."
  }),
  worker: Schema.NullOr(Schema.String).annotateKey({ description: "The id of the worker." })
})
export type LoggedAttempt = typeof LoggedAttempt.Type

/** A round with its attempts. */
export const LoggedRound = Schema.Struct({
  ...DeliveryRow.fields,
  begunBy: Schema.NullOr(Schema.Literals(["routed", "redelivered", "replayed"])).annotateKey({
    description: "What began it; null if that is no longer in the history."
  }),
  deadline: Schema.NullOr(Timestamp),
  waitsBy: Schema.NullOr(Schema.Literals(["nak", "schedule"])).annotateKey({
    description: "How it waits for a further attempt."
  }),
  discardedAt: Schema.NullOr(Timestamp),
  endProbes: Schema.NullOr(Schema.Int).annotateKey({
    description: "How many of all its attempts were probes, where it ended without success."
  }),
  repeats: Schema.Int.annotateKey({ description: "Facts that repeat others." }),
  bits: Schema.Int.annotateKey({ description: "The state in bits." }),
  recorded: Schema.Array(LoggedAttempt)
})
export type LoggedRound = typeof LoggedRound.Type

/** Names one delivery. */
export const DeliveryLookup = Schema.Struct({
  tenant: Schema.optionalKey(Token).annotateKey({ description: "The name of the tenant." }),
  event: Text.annotateKey({
    description:
      "The event's id; where the tenant is given, also without it in front. Or `evt_` + its sequence, which works for every event."
  }),
  endpoint: Schema.optionalKey(Token).annotateKey({
    description: "(Default: all endpoints of the event)"
  })
})
export type DeliveryLookup = typeof DeliveryLookup.Type

/** Rounds of one delivery or event that are shown at most. */
export const maxLoggedRounds = 1_000

/** An event as the log knows it. */
export const LoggedEvent = Schema.Struct({
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  event: Schema.String.annotateKey({ description: "Its id." }),
  eventSeq: Schema.Int.annotateKey({
    description: "The sequence of the event in the event stream."
  }),
  eventAt: Timestamp.annotateKey({ description: "When the event was stored." }),
  type: Schema.NullOr(Schema.String).annotateKey({ description: "The type of the event." })
})
export type LoggedEvent = typeof LoggedEvent.Type

/** The rounds of a delivery or of an event, oldest first. */
export const LoggedDeliveries = Schema.Struct({
  rounds: Schema.Array(LoggedRound).annotateKey({
    description: "The rounds of the delivery, the first one first."
  }),
  unwanted: Schema.Array(LoggedEvent).annotateKey({
    description: "Events of this id that no endpoint wanted, oldest first: they have no rounds."
  }),
  oldest: Schema.NullOr(Timestamp).annotateKey({
    description:
      "How far the log reaches back: when the oldest of its ended rounds ended; null without any."
  }),
  position: Schema.Int.annotateKey({
    description: "Sequence in HISTORY up to which it has taken the facts."
  }),
  lag: Lag.annotateKey({ description: "How far the log is behind the history." })
})
export type LoggedDeliveries = typeof LoggedDeliveries.Type

/** Sums of the log, and how far it is behind. */
export const LogSums = Schema.Struct({ ...LoggedSums.fields, lag: Lag })
export type LogSums = typeof LogSums.Type

/** How full the sums of hours are. */
export const SumsFill = Schema.Struct({
  rows: Schema.Int.annotateKey({
    description: "Rows that are kept. At `maxRows` the oldest hours are removed."
  }),
  maxRows: Schema.Int.annotateKey({ description: "The most rows that are kept." }),
  together: Schema.Int.annotateKey({
    description:
      "Times that an endpoint or type was summed up with others since the start: its tenant had too many."
  })
})
export type SumsFill = typeof SumsFill.Type

/** How the projection does. */
export const ProjectionStatus = Schema.Struct({
  state: Schema.Literals(["rebuilding", "following", "stopped"]).annotateKey({
    description: "`stopped`: a problem keeps it from going on."
  }),
  problem: Schema.NullOr(Schema.String).annotateKey({
    description: "The sentence about what is wrong; null if nothing is."
  }),
  position: Schema.Int.annotateKey({
    description: "Up to which fact it has read: a sequence in HISTORY."
  }),
  lag: Lag.annotateKey({ description: "How far the log is behind the history." }),
  rows: Schema.Int.annotateKey({ description: "Rounds that have ended, and those that have not." }),
  waiting: Schema.Int.annotateKey({ description: "Deliveries that wait." }),
  repeatedAttempts: Schema.Int.annotateKey({
    description: "Attempts that were recorded again, since the files were made or rebuilt."
  }),
  bytes: Schema.Int.annotateKey({ description: "Size of its files, bytes." }),
  sums: SumsFill.annotateKey({ description: "The sums of hours." }),
  oldest: Schema.NullOr(Timestamp).annotateKey({
    description: "When the oldest round that is kept ended; null if none is."
  }),
  data: Schema.String.annotateKey({ description: "Where the files are." })
})
export type ProjectionStatus = typeof ProjectionStatus.Type

/** The log cannot be asked: the sentence says why. */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>()("LogUnavailable", {
  reason: Schema.String,
  /** Seconds until it is worth asking again, where that is known. */
  retryAfter: Schema.optionalKey(Schema.Int)
}) {
  override get message() {
    return `the delivery log cannot be asked now: ${this.reason}`
  }
}

/** What another thread or process says of a log that cannot be asked. */
export const Unavailable = Schema.Struct({
  unavailable: Schema.String,
  retryAfter: LogUnavailable.fields.retryAfter
})
export type Unavailable = typeof Unavailable.Type

/** Says to another thread or process that the log cannot be asked. */
export const saidOf = ({ reason, retryAfter }: LogUnavailable): Unavailable => ({
  unavailable: reason,
  ...present({ retryAfter })
})

/** Returns the failure of which another thread or process has told. */
export const unavailableOf = ({ retryAfter, unavailable }: Unavailable): LogUnavailable =>
  new LogUnavailable({ reason: unavailable, ...present({ retryAfter }) })

/** What became of deliveries, from the projection. Answers lag behind the history, and say so. */
export class DeliveryLog extends Context.Service<
  DeliveryLog,
  {
    /** Finds rows, newest first. Fails with Invalid for the `cursor` of another query. */
    readonly find: (query: DeliveryQuery) => Effect.Effect<DeliveryPage, Invalid | LogUnavailable>
    /** Finds attempts, newest first. Fails as `find` does. */
    readonly findAttempts: (
      query: AttemptQuery
    ) => Effect.Effect<AttemptPage, Invalid | LogUnavailable>
    /** Finds events, newest first. Fails as `find` does. */
    readonly findEvents: (query: EventQuery) => Effect.Effect<EventPage, Invalid | LogUnavailable>
    /** Finds the rounds of a delivery or of an event. There are none if it is not known. */
    readonly get: (lookup: DeliveryLookup) => Effect.Effect<LoggedDeliveries, LogUnavailable>
    /** Sums up hours. Fails with Invalid for a range that is too long. */
    readonly sums: (query: SumsQuery) => Effect.Effect<LogSums, Invalid | LogUnavailable>
    readonly status: Effect.Effect<ProjectionStatus, LogUnavailable>
  }
>()("petrel/projection/DeliveryLog") {}
