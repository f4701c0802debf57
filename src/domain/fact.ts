import { Schema } from "effect"
import { Alert } from "./alert.ts"
import { ConfigurationChange } from "./configuration.ts"
import { DeadReason, ErrorClass, Redirect, Response } from "./outcome.ts"
import { Reconciliation } from "./reconciliation.ts"
import { SettingsChange } from "./settings/tenant-table.ts"
import { SourceChange } from "./source.ts"
import { Timestamp } from "./timestamp.ts"

/** Facts that report no failure. */
const okKinds = [
  "routed",
  "delivered",
  "delivered-late",
  "circuit-half-opened",
  "circuit-closed",
  "endpoint-changed",
  "settings-changed",
  "thresholds-changed",
  "endpoint-enabled",
  "endpoint-paused",
  "endpoint-resumed",
  "redelivered",
  "replayed",
  "discarded",
  "alert-cleared",
  "secrets-revealed",
  "token-created",
  "token-revoked",
  "source-added",
  "source-changed",
  "source-removed",
  "quarantine-released",
  "quarantine-discarded",
  "reconciled"
] as const
/** Facts that report a failure. The broker republishes them on the failure subjects. */
const failureKinds = [
  "attempt-failed",
  "dead-lettered",
  "circuit-opened",
  "endpoint-disabled",
  "endpoint-suspended",
  "unroutable",
  "missing",
  "quarantined",
  "source-refusing",
  "provider-lost",
  "reconcile-failed",
  "alert-raised"
] as const
export const factKinds = [...okKinds, ...failureKinds] as const
export type FactKind = (typeof factKinds)[number]

/**
 * Returns the token of a history subject that determines whether the broker republishes the fact.
 */
export const factResult = (kind: FactKind): "ok" | "failure" =>
  (okKinds as ReadonlyArray<string>).includes(kind) ? "ok" : "failure"

/**
 * Facts of a successful attempt: recorded by the owner of the delivery's partition, or by a worker
 * that owned it when the request was sent.
 */
export const successKinds = [
  "delivered",
  "delivered-late"
] as const satisfies ReadonlyArray<FactKind>
export const isSuccess = (kind: FactKind): boolean =>
  kind === "delivered" || kind === "delivered-late"

/**
 * The reason of an attempt whose plan lost to another router's plan that does not name the
 * endpoint.
 */
export const plannedOtherwise = "planned-otherwise"

/**
 * A message in a stream. `at` is when it was stored, ms since the epoch. It is part of the identity
 * because a truncated stream assigns a sequence again.
 */
export const Place = Schema.Struct({
  stream: Schema.String,
  seq: Schema.Int,
  at: Timestamp,
  /** Which of the message's entries, from 1; absent for a message with one delivery. */
  entry: Schema.optionalKey(Schema.Int)
})
export type Place = typeof Place.Type

/** Returns `<stream>:<sequence>[.<entry>]:<ms>`, the form in headers and message ids. */
export const placeName = ({ at, entry, seq, stream }: Place): string =>
  entry === undefined ? `${stream}:${seq}:${at}` : `${stream}:${seq}.${entry}:${at}`

const placePattern = /^(.+):(\d+)(?:\.(\d+))?:(\d+)$/

/** Parses a {@link placeName}. Returns undefined for any other text. */
export const readPlace = (name: string): Place | undefined => {
  const [, stream, seq, entry, at] = placePattern.exec(name) ?? []
  if (stream === undefined) return undefined
  const of = { stream, seq: Number(seq), at: Number(at) }
  return entry === undefined ? of : { ...of, entry: Number(entry) }
}

/** Entries are parts of a sequence: a message has fewer of them than this. */
const entriesPerSequence = 512

/** The first sequence of which a double cannot hold all entries: their slots are not exact. */
export const firstInexactSequence = 2 ** 44

/**
 * Returns a place as one number, in the order of the stream: the sequence, and each entry of its
 * message 1/512 further. Tables of what is known of a stream's deliveries have it as their key. Exact
 * below {@link firstInexactSequence}.
 */
export const slotOf = ({ entry = 0, seq }: Pick<Place, "entry" | "seq">): number =>
  seq + entry / entriesPerSequence

/** Returns the sequence and the entry of a slot. */
export const placeOfSlot = (slot: number): Pick<Place, "entry" | "seq"> => {
  const seq = Math.floor(slot)
  return slot === seq ? { seq } : { seq, entry: (slot - seq) * entriesPerSequence }
}

/** An endpoint in a plan, with the configuration that the router saw. */
export const Planned = Schema.Struct({
  id: Schema.String,
  generation: Schema.String,
  revision: Schema.Int,
  /** Give-up deadline of the delivery, ms since the epoch. */
  deadline: Timestamp
})
export type Planned = typeof Planned.Type

/**
 * A part of the plan of one event. Parts are ordered by endpoint id. The part with `last` completes
 * the plan.
 */
export const Plan = Schema.Struct({
  part: Schema.Int,
  last: Schema.Boolean,
  endpoints: Schema.Array(Planned),
  skipped: Schema.Array(Schema.Struct({ id: Schema.String, reason: Schema.String })),
  /** The revision of the endpoints bucket up to which the router had seen all changes. */
  directory: Schema.optionalKey(Schema.Int),
  /** How the event came (domain/origin.ts); absent if it was published to its subject. */
  channel: Schema.optionalKey(Schema.String)
})
export type Plan = typeof Plan.Type

/** A change of when alerts are raised about a tenant and its endpoints, or about the system. */
const ThresholdsChange = Schema.Struct({
  /** The revision in the bucket of alerts. */
  revision: Schema.Int,
  /** What is set since then; absent if nothing is. */
  now: Schema.optionalKey(
    Schema.Union([
      Schema.Literal("off"),
      Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite]))
    ])
  )
})
export type ThresholdsChange = typeof ThresholdsChange.Type

/** A token of the HTTP API, without its secret. */
const FactToken = Schema.Struct({
  id: Schema.String,
  name: Schema.optional(Schema.String),
  scopes: Schema.Array(Schema.String),
  rate: Schema.optional(Schema.Int),
  expiresAt: Schema.optional(Timestamp),
  /** The id of the token that it was made with. */
  parent: Schema.optional(Schema.String),
  /** `link` opens a session in a browser, `session` is one. (Default: of a program) */
  use: Schema.optional(Schema.Literals(["link", "session"])),
  /** The one endpoint that it is about. */
  endpoint: Schema.optional(Schema.String)
})

/**
 * One record of the history stream. Times in ms since the epoch, durations in ms. Undefined fields
 * are not written.
 */
export const Fact = Schema.Struct({
  v: Schema.Literal(1),
  kind: Schema.Literals(factKinds),
  at: Timestamp,
  tenant: Schema.String,
  /** `_` if the fact is about no endpoint. */
  endpoint: Schema.String,
  /** The event's id, a label. */
  event: Schema.optional(Schema.String),
  /** The event's sequence in EVENTS. */
  eventSeq: Schema.optional(Schema.Int),
  /** When the event was stored. Together with the sequence it identifies the event. */
  eventAt: Schema.optional(Timestamp),
  type: Schema.optional(Schema.String),
  /** `<event id>.<endpoint id>` */
  delivery: Schema.optional(Schema.String),
  /** In `redelivered` and `replayed` the new round, in `discarded` the round that had ended. */
  round: Schema.optional(Schema.String),
  /** The number of the request in its round, from 1. */
  attempt: Schema.optional(Schema.Int),
  /** True for a request that probed an endpoint whose circuit was half-open. */
  probe: Schema.optional(Schema.Boolean),
  /** In `dead-lettered`: how many of the attempts were probes. */
  probes: Schema.optional(Schema.Int),
  /** The message that this fact settles, or whose attempt it records. */
  from: Schema.optional(Place),
  /** The place that this message was moved from: a {@link placeName}. */
  origin: Schema.optional(Schema.String),
  status: Schema.optional(Schema.Int),
  error: Schema.optional(Schema.Struct({ class: ErrorClass, message: Schema.String })),
  durationMs: Schema.optional(Schema.Number),
  connectMs: Schema.optional(Schema.Number),
  firstByteMs: Schema.optional(Schema.Number),
  response: Schema.optional(Response),
  /** The redirects that the attempt followed. `status` and `response` are those of the last answer. */
  redirects: Schema.optional(Schema.Array(Redirect)),
  nextAttemptAt: Schema.optional(Timestamp),
  /**
   * How a retry waits: as a NAK of the same message, or as a schedule of the broker. Absent for a
   * direct delivery: the queue decides it later.
   */
  wait: Schema.optional(Schema.Literals(["nak", "schedule"])),
  deadline: Schema.optional(Timestamp),
  reason: Schema.optional(Schema.Union([DeadReason, Schema.String])),
  /** Sequence in DEAD of the dead letter that is created, sent again or discarded. */
  dead: Schema.optional(Schema.Int),
  /**
   * Present in `routed`. Also present in the `delivered` of an event with a single endpoint that
   * was delivered directly, so that no earlier fact recorded its plan.
   */
  plan: Schema.optional(Plan),
  /** In `endpoint-changed`. */
  change: Schema.optional(ConfigurationChange),
  /** In `settings-changed`. */
  settings: Schema.optional(SettingsChange),
  /** In `thresholds-changed`. */
  thresholds: Schema.optional(ThresholdsChange),
  /** In `token-created` and `token-revoked`. */
  token: Schema.optional(FactToken),
  /** In `source-added`, `source-changed` and `source-removed`. */
  source: Schema.optional(SourceChange),
  /**
   * In facts of what came in: its source, and its sequence in INTAKE where it is in quarantine, or
   * was.
   */
  incoming: Schema.optional(
    Schema.Struct({
      source: Schema.String,
      provider: Schema.String,
      seq: Schema.optional(Schema.Int)
    })
  ),
  /**
   * In `reconciled` and `provider-lost`; in `reconcile-failed` what was found before it was broken
   * off.
   */
  reconciled: Schema.optional(Reconciliation),
  /** In `alert-raised` and `alert-cleared`. */
  alert: Schema.optional(Alert),
  worker: Schema.optional(Schema.String),
  /** Who requested it: `user@host`, or the value of `--by`. */
  by: Schema.optional(Schema.String),
  /**
   * Present with `by`, and on changes of an endpoint's configuration or state: the broker user
   * whose connection requested it.
   */
  user: Schema.optional(Schema.String),
  /** The event's traceparent. */
  trace: Schema.optional(Schema.String),
  /** The value of the first forwarded header that the event has, shortened. */
  correlation: Schema.optional(Schema.String)
})
export type Fact = typeof Fact.Type
