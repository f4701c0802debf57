import { Schema } from "effect"
import { Alert } from "./alert.ts"
import { ConfigurationChange } from "./configuration.ts"
import { DeadReason, ErrorClass, Response } from "./outcome.ts"

/** Facts that are news but not bad news. */
export const okKinds = [
  "routed",
  "delivered",
  "delivered-late",
  "circuit-half-opened",
  "circuit-closed",
  "endpoint-changed",
  "endpoint-enabled",
  "endpoint-paused",
  "endpoint-resumed",
  "redelivered",
  "replayed",
  "discarded",
  "alert-cleared"
] as const
/** Facts that alerts are made of: the broker republishes them on the failure subjects. */
export const failureKinds = [
  "attempt-failed",
  "dead-lettered",
  "circuit-opened",
  "endpoint-disabled",
  "unroutable",
  "missing",
  "alert-raised"
] as const
export const factKinds = [...okKinds, ...failureKinds] as const
export type FactKind = (typeof factKinds)[number]

/** The part of a history subject that says whether the broker republishes the fact. */
export const factResult = (kind: FactKind): "ok" | "failure" =>
  (okKinds as ReadonlyArray<string>).includes(kind) ? "ok" : "failure"

/**
 * Facts that an attempt succeeded: recorded by the worker that owned the delivery's partition, or by
 * one that had owned it when the request went out.
 */
export const successKinds = [
  "delivered",
  "delivered-late"
] as const satisfies ReadonlyArray<FactKind>
export const isSuccess = (kind: FactKind): boolean =>
  kind === "delivered" || kind === "delivered-late"

/** The reason of an attempt that was made while another plan came to count, which does not name the endpoint. */
export const plannedOtherwise = "planned-otherwise"

/**
 * A message in a stream. `at` is when it was stored, ms since the epoch: a stream that loses its end
 * gives the sequence again.
 */
export const Place = Schema.Struct({
  stream: Schema.String,
  seq: Schema.Int,
  at: Schema.Number
})
export type Place = typeof Place.Type

/** `<stream>:<sequence>:<ms>`: a place as headers and ids of messages carry it. */
export const placeName = ({ at, seq, stream }: Place): string => `${stream}:${seq}:${at}`

const placePattern = /^(.+):(\d+):(\d+)$/

/** The place that a header names, or undefined where it names none. */
export const readPlace = (name: string): Place | undefined => {
  const [, stream, seq, at] = placePattern.exec(name) ?? []
  return stream === undefined ? undefined : { stream, seq: Number(seq), at: Number(at) }
}

/** An endpoint as a plan names it: which configuration the router saw. */
export const Planned = Schema.Struct({
  id: Schema.String,
  generation: Schema.String,
  revision: Schema.Int,
  /** Give-up deadline of the delivery, ms since the epoch. */
  deadline: Schema.Number
})
export type Planned = typeof Planned.Type

/**
 * A part of the plan for one event. Parts follow each other in the order of endpoint ids;
 * the part with `last` ends the plan.
 */
export const Plan = Schema.Struct({
  part: Schema.Int,
  last: Schema.Boolean,
  endpoints: Schema.Array(Planned),
  skipped: Schema.Array(Schema.Struct({ id: Schema.String, reason: Schema.String })),
  /** Revision of the endpoints bucket up to which its maker knew all changes. */
  directory: Schema.optionalKey(Schema.Int)
})
export type Plan = typeof Plan.Type

/**
 * One record of the history stream. Times in ms since the epoch, durations in ms. What is undefined
 * is not written.
 */
export const Fact = Schema.Struct({
  v: Schema.Literal(1),
  kind: Schema.Literals(factKinds),
  at: Schema.Number,
  tenant: Schema.String,
  /** `_` where no endpoint is meant. */
  endpoint: Schema.String,
  /** The event's id, a label. */
  event: Schema.optional(Schema.String),
  /** The event's sequence in EVENTS. */
  eventSeq: Schema.optional(Schema.Int),
  /** When the event was stored; with its sequence its identity. */
  eventAt: Schema.optional(Schema.Number),
  type: Schema.optional(Schema.String),
  /** `<event id>.<endpoint id>` */
  delivery: Schema.optional(Schema.String),
  /** In `redelivered` and `replayed` the one that begins, in `discarded` the one that had ended. */
  round: Schema.optional(Schema.String),
  attempt: Schema.optional(Schema.Int),
  /** The message that this fact settles, or whose attempt it tells of. */
  from: Schema.optional(Place),
  /** Where that message was moved from: a {@link placeName}. */
  origin: Schema.optional(Schema.String),
  status: Schema.optional(Schema.Int),
  error: Schema.optional(Schema.Struct({ class: ErrorClass, message: Schema.String })),
  durationMs: Schema.optional(Schema.Number),
  connectMs: Schema.optional(Schema.Number),
  firstByteMs: Schema.optional(Schema.Number),
  response: Schema.optional(Response),
  nextAttemptAt: Schema.optional(Schema.Number),
  /**
   * How a retry waits: as a NAK of the same message, or as a schedule of the broker. Not told where
   * the attempt was made from the event: that is decided in the queue.
   */
  wait: Schema.optional(Schema.Literals(["nak", "schedule"])),
  deadline: Schema.optional(Schema.Number),
  reason: Schema.optional(Schema.Union([DeadReason, Schema.String])),
  /** Sequence of the dead letter in DEAD: what an end left, or what is sent again or discarded. */
  dead: Schema.optional(Schema.Int),
  /**
   * In `routed`; in the `delivered` of an event that goes to one endpoint alone, and was taken at
   * once, so that no fact told of its plan before.
   */
  plan: Schema.optional(Plan),
  /** In `endpoint-changed`. */
  change: Schema.optional(ConfigurationChange),
  /** In `alert-raised` and `alert-cleared`. */
  alert: Schema.optional(Alert),
  worker: Schema.optional(Schema.String),
  /** Who asked for it: `user@host`, or what was given. */
  by: Schema.optional(Schema.String),
  /**
   * With `by`, and where an endpoint was changed, enabled, disabled, paused or resumed: the broker's user whose
   * connection told it.
   */
  user: Schema.optional(Schema.String),
  /** The event's traceparent. */
  trace: Schema.optional(Schema.String)
})
export type Fact = typeof Fact.Type
