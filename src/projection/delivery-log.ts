import { Context, type Effect, Schema } from "effect"
import { ErrorClass } from "../domain/outcome.ts"
import type { Invalid } from "../domain/problem.ts"
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
  /** (Default: every tenant) */
  tenant: Schema.optionalKey(Token),
  since: Schema.optionalKey(Timestamp),
  until: Schema.optionalKey(Timestamp),
  /** Of another page. */
  cursor: Schema.optionalKey(Schema.String),
  /** (Default: 50) */
  limit: Schema.optionalKey(Limit)
}

const Types = several(Text)

/**
 * Which rows to find; all conditions hold at once, and of several values of one any. Times in ms since
 * the epoch, both inclusive: when a round ended; of one that waits, when it began.
 */
export const DeliveryQuery = Schema.Struct({
  ...pageFields,
  endpoint: several(Token),
  /** The event's id, exactly; or its beginning, if it ends with `*`. */
  event: Schema.optionalKey(Text),
  /** The event's type, exactly; or its beginning, if it ends with `*`, such as `invoice.*`. */
  type: Types,
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
  event: Schema.optionalKey(Text),
  type: Types,
  outcome: Schema.optionalKey(AttemptOutcome),
  status: several(Status),
  error: several(ErrorClass)
})
export type AttemptQuery = typeof AttemptQuery.Type

/** Which events to find, as in DeliveryQuery; times of when they were stored. */
export const EventQuery = Schema.Struct({
  ...pageFields,
  type: Types,
  /** How it came: see domain/origin.ts. Or the beginning of that, if it ends with `*`. */
  channel: several(Text)
})
export type EventQuery = typeof EventQuery.Type

/** Whose a row is. */
const roundFields = {
  /** `<event id>.<endpoint id>` */
  delivery: Schema.String,
  round: Schema.String,
  tenant: Schema.String,
  endpoint: Schema.String,
  /** The event's id. */
  event: Schema.String,
  /** The event's sequence in EVENTS. */
  eventSeq: Schema.Int,
  /** When the event was stored. */
  eventAt: Timestamp,
  type: Schema.NullOr(Schema.String)
}

/** One round of a delivery. Times in ms since the epoch. */
export const DeliveryRow = Schema.Struct({
  ...roundFields,
  state: DeliveryState,
  /** The success was recorded by a worker that no longer owned the partition. */
  late: Schema.Boolean,
  /** The highest number of an attempt. */
  attempts: Schema.Int,
  /** How many of the recorded attempts were probes. */
  probes: Schema.Int,
  /** Of the success, else of the last recorded attempt. */
  status: Schema.NullOr(Schema.Int),
  /** Of the same attempt: the class of its error. */
  error: Schema.NullOr(Schema.String),
  /** Why it was dead-lettered or skipped. */
  reason: Schema.NullOr(Schema.String),
  /** Null if that is not in the history any more. */
  beganAt: Schema.NullOr(Timestamp),
  /** When it ended; of one that waits, when it began. */
  at: Timestamp,
  /** Duration of the same attempt. */
  durationMs: Schema.NullOr(Schema.Number),
  /** Of one that waits for a further attempt. */
  nextAttemptAt: Schema.NullOr(Timestamp),
  /** Sequence in DEAD of the dead letter that it left. */
  dead: Schema.NullOr(Schema.Int),
  /** The round that sent its dead letter again. */
  redeliveredAs: Schema.NullOr(Schema.String),
  /** The fact that ended it, or that began it if it waits: its sequence in HISTORY. */
  seq: Schema.Int
})
export type DeliveryRow = typeof DeliveryRow.Type

/** How far the projection is behind the history. */
export const Lag = Schema.Struct({
  /** Facts that are stored and not yet seen. */
  facts: Schema.Int,
  /**
   * How long ago the newest fact that was seen was stored, if there are newer ones. If none is known
   * it is 0, or how long ago that was looked at, where that is more than 5 s.
   */
  ms: Schema.Number
})
export type Lag = typeof Lag.Type

/** The fields of a page other than its rows, which are newest first. */
const pageEnds = {
  /**
   * A page ends after 40 ms of searching. It then has what was found among all that is newer than
   * this, or older on the way back, ms since the epoch; null if it is full or nothing is left.
   */
  searchedUntil: Schema.NullOr(Timestamp),
  /** For the next page, of what is older; null if there is none. */
  cursor: Schema.NullOr(Schema.String),
  /** For the previous page, of what is newer; null if there is none. */
  previous: Schema.NullOr(Schema.String)
}
export type PageEnds = Schema.Struct.Type<typeof pageEnds>

export const DeliveryPage = Schema.Struct({
  deliveries: Schema.Array(DeliveryRow),
  ...pageEnds,
  lag: Lag
})
export type DeliveryPage = typeof DeliveryPage.Type

/** One attempt of a delivery. Times in ms since the epoch. */
export const AttemptRow = Schema.Struct({
  ...roundFields,
  /** Its number within its round, from 1. */
  number: Schema.Int,
  at: Timestamp,
  outcome: AttemptOutcome,
  /** It was sent while the circuit was half-open. */
  isProbe: Schema.Boolean,
  status: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.Struct({ class: Schema.String, message: Schema.String })),
  durationMs: Schema.NullOr(Schema.Number),
  nextAttemptAt: Schema.NullOr(Timestamp),
  worker: Schema.NullOr(Schema.String),
  /** Sequence in HISTORY of its fact, which has the answer. */
  seq: Schema.Int
})
export type AttemptRow = typeof AttemptRow.Type

export const AttemptPage = Schema.Struct({
  attempts: Schema.Array(AttemptRow),
  ...pageEnds,
  lag: Lag
})
export type AttemptPage = typeof AttemptPage.Type

/** An event. Times in ms since the epoch. */
export const EventRow = Schema.Struct({
  /** Its id. */
  id: Schema.String,
  tenant: Schema.String,
  /** Its sequence in EVENTS. */
  seq: Schema.Int,
  /** When it was stored. */
  at: Timestamp,
  type: Schema.NullOr(Schema.String),
  /** How it came; null if that is not known. */
  channel: Schema.NullOr(Schema.String),
  /** Rounds of its deliveries, by their states. */
  rounds: Schema.Struct({
    waiting: Schema.Int,
    delivered: Schema.Int,
    deadLettered: Schema.Int,
    discarded: Schema.Int,
    skipped: Schema.Int
  })
})
export type EventRow = typeof EventRow.Type

export const EventPage = Schema.Struct({
  events: Schema.Array(EventRow),
  ...pageEnds,
  lag: Lag
})
export type EventPage = typeof EventPage.Type

/** One recorded attempt. The answer's snippet is in the history, under `seq`. */
export const LoggedAttempt = Schema.Struct({
  number: Schema.Int,
  /** Sequence in HISTORY of its fact. */
  seq: Schema.Int,
  at: Timestamp,
  isSuccess: Schema.Boolean,
  isProbe: Schema.Boolean,
  status: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.Struct({ class: ErrorClass, message: Schema.String })),
  durationMs: Schema.NullOr(Schema.Number),
  nextAttemptAt: Schema.NullOr(Timestamp),
  worker: Schema.NullOr(Schema.String)
})
export type LoggedAttempt = typeof LoggedAttempt.Type

/** A round with its attempts. */
export const LoggedRound = Schema.Struct({
  ...DeliveryRow.fields,
  /** What began it; null if that is not in the history any more. */
  begunBy: Schema.NullOr(Schema.Literals(["routed", "redelivered", "replayed"])),
  deadline: Schema.NullOr(Timestamp),
  /** How it waits for a further attempt. */
  waitsBy: Schema.NullOr(Schema.Literals(["nak", "schedule"])),
  discardedAt: Schema.NullOr(Timestamp),
  /** How many of all its attempts were probes, where it ended without success. */
  endProbes: Schema.NullOr(Schema.Int),
  /** Facts that repeat others. */
  repeats: Schema.Int,
  /** The state in bits: see history/fold/round.ts. */
  bits: Schema.Int,
  recorded: Schema.Array(LoggedAttempt)
})
export type LoggedRound = typeof LoggedRound.Type

/** Names one delivery. */
export const DeliveryLookup = Schema.Struct({
  tenant: Schema.optionalKey(Token),
  /**
   * The event's id; where the tenant is given, also without it in front. Or `evt_` + its sequence,
   * which works for every event.
   */
  event: Text,
  /** (Default: all endpoints of the event) */
  endpoint: Schema.optionalKey(Token)
})
export type DeliveryLookup = typeof DeliveryLookup.Type

/** Rounds of one delivery or event that are shown at most. */
export const maxLoggedRounds = 1_000

/** An event as the log knows it. */
export const LoggedEvent = Schema.Struct({
  tenant: Schema.String,
  /** Its id. */
  event: Schema.String,
  eventSeq: Schema.Int,
  eventAt: Timestamp,
  type: Schema.NullOr(Schema.String)
})
export type LoggedEvent = typeof LoggedEvent.Type

/** The rounds of a delivery or of an event, oldest first. */
export const LoggedDeliveries = Schema.Struct({
  rounds: Schema.Array(LoggedRound),
  /** Events of this id that no endpoint wanted, oldest first: they have no rounds. */
  unwanted: Schema.Array(LoggedEvent),
  /** How far the log reaches back: when the oldest of its ended rounds ended; null without any. */
  oldest: Schema.NullOr(Timestamp),
  /** Sequence in HISTORY up to which it has taken the facts. */
  position: Schema.Int,
  lag: Lag
})
export type LoggedDeliveries = typeof LoggedDeliveries.Type

/** Sums of the log, and how far it is behind. */
export const LogSums = Schema.Struct({ ...LoggedSums.fields, lag: Lag })
export type LogSums = typeof LogSums.Type

/** How full the sums of hours are. */
export const SumsFill = Schema.Struct({
  /** Rows that there are, and that there may be: the oldest hours go first. */
  rows: Schema.Int,
  maxRows: Schema.Int,
  /** Times that an endpoint or type was summed up with others since the start: its tenant had too many. */
  together: Schema.Int
})
export type SumsFill = typeof SumsFill.Type

/** How the projection does. */
export const ProjectionStatus = Schema.Struct({
  /** `stopped`: a problem keeps it from going on. */
  state: Schema.Literals(["rebuilding", "following", "stopped"]),
  /** The sentence about what is wrong; null if nothing is. */
  problem: Schema.NullOr(Schema.String),
  /** Up to which fact it has read: a sequence in HISTORY. */
  position: Schema.Int,
  lag: Lag,
  /** Rounds that have ended, and those that have not. */
  rows: Schema.Int,
  waiting: Schema.Int,
  /** Attempts that were recorded again, since the files were made or rebuilt. */
  repeatedAttempts: Schema.Int,
  /** On disk. */
  bytes: Schema.Int,
  sums: SumsFill,
  /** When the oldest round that is kept ended, ms since the epoch; null if none is. */
  oldest: Schema.NullOr(Timestamp),
  /** Where the files are. */
  data: Schema.String
})
export type ProjectionStatus = typeof ProjectionStatus.Type

/** The log cannot be asked: the sentence says why. */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>()("LogUnavailable", {
  reason: Schema.String
}) {
  override get message() {
    return `the delivery log cannot be asked now: ${this.reason}`
  }
}

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
