import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { ConnectionCheck } from "../domain/connection-check.ts"
import { askInParts } from "./exchange.ts"

/** What a delivery in an owner's memory is doing (`delivery/execution/task.ts`). */
export const TaskMode = Schema.Literals([
  "waiting",
  "deciding",
  "sending",
  "recording",
  "released",
  "returned",
  "cancelled"
])
export type TaskMode = typeof TaskMode.Type

/** A round of a delivery. Times in ms since the epoch. */
const QueriedRound = Schema.Struct({
  eventSeq: Schema.Int,
  eventAt: Schema.Number,
  round: Schema.String
})

/**
 * A query to the owner of a partition: about the whole partition, about its endpoints one by one,
 * how it reaches the host of one of them, or about one delivery to it.
 */
export const IntrospectionQuery = Schema.Struct({
  v: Schema.Literal(1),
  about: Schema.Literals(["partition", "endpoints", "alerts", "connection", "delivery"]),
  /** Limits the answer to this tenant. */
  tenant: Schema.optionalKey(Schema.String),
  /** Limits the answer to this endpoint of the tenant. */
  endpoint: Schema.optionalKey(Schema.String),
  /**
   * Limits the counts for alerts to these tenants; if empty, they cover all tenants with a failure.
   */
  tenants: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The round of a delivery to that endpoint which the query is about. */
  delivery: Schema.optionalKey(QueriedRound)
})
export type IntrospectionQuery = typeof IntrospectionQuery.Type

/** Deliveries of an endpoint now, and its attempts of the last hour. */
export const EndpointActivity = Schema.Struct({
  tenant: Schema.String,
  endpoint: Schema.String,
  inFlight: Schema.Int,
  /** Waiting in its lane. */
  inLine: Schema.Int,
  /**
   * In its backlog, those that have ended not counted. Absent where the owner has not read where the
   * backlog begins, or cannot read all of it, and in the answers of an older version.
   */
  backlog: Schema.optionalKey(Schema.Int),
  attempts: Schema.Int,
  delivered: Schema.Int,
  /** Duration of the attempts, ms. */
  p50Ms: Schema.optionalKey(Schema.Number),
  p95Ms: Schema.optionalKey(Schema.Number)
})
export type EndpointActivity = typeof EndpointActivity.Type

/** Deliveries of a partition now, and its attempts of the last hour. */
export const PartitionActivity = Schema.Struct({
  inFlight: Schema.Int,
  inLine: Schema.Int,
  /** Messages that the owner has pulled from the queue and not settled. */
  prefetched: Schema.Int,
  /** Messages that the owner found unreadable; an older version does not report it. */
  unreadable: Schema.optionalKey(Schema.Int),
  /** In all backlogs; absent as that of an endpoint. */
  backlog: Schema.optionalKey(Schema.Int),
  attempts: Schema.Int,
  delivered: Schema.Int,
  /** Histogram of durations: attempts per step of the scale. */
  durations: Schema.Array(Schema.Int)
})
export type PartitionActivity = typeof PartitionActivity.Type

/** Outcomes of a tenant's deliveries in a partition, within the window of its alerts. */
export const TenantCounts = Schema.Struct({
  tenant: Schema.String,
  delivered: Schema.Int,
  /** Deliveries whose first attempt failed and that have not ended since. */
  pending: Schema.Int,
  /** Ended without success. */
  dead: Schema.Int,
  /** Its endpoints whose circuit is not closed; an older version does not report it. */
  openCircuits: Schema.optionalKey(Schema.Int)
})
export type TenantCounts = typeof TenantCounts.Type

/** A delivery in the owner's memory. */
export const TaskActivity = Schema.Struct({
  mode: TaskMode.annotateKey({ description: "What it is doing." }),
  /** Time since it joined its lane; of a task that was begun, since then, ms. */
  forMs: Schema.Int.annotateKey({
    description: "Time since it joined its lane; of a task that was begun, since then, ms."
  })
})
export type TaskActivity = typeof TaskActivity.Type

/** A chunk of the owner's answer: an answer may be longer than a message. */
export const IntrospectionChunk = Schema.Struct({
  v: Schema.Literal(1),
  worker: Schema.String,
  /** Start of the counts of the last hour, ms since the epoch. */
  since: Schema.Number,
  /** Index of the chunk, from 0. */
  part: Schema.Int,
  isLast: Schema.Boolean,
  partition: Schema.optionalKey(PartitionActivity),
  /** Endpoints whose circuit is not closed. */
  openCircuits: Schema.optionalKey(Schema.Int),
  /** Start of the counts for alerts, ms since the epoch. */
  watchedSince: Schema.optionalKey(Schema.Number),
  tenants: Schema.optionalKey(Schema.Array(TenantCounts)),
  /**
   * Endpoints with deliveries now or attempts in the last hour; there is nothing to report of
   * others.
   */
  endpoints: Schema.Array(EndpointActivity),
  /** In the last chunk. Absent for an endpoint that the owner does not know. */
  connection: Schema.optionalKey(ConnectionCheck),
  /** Absent for a delivery that is not in the owner's memory. */
  task: Schema.optionalKey(TaskActivity),
  /**
   * How far the owner's clock is ahead of the broker's, or behind it (negative), at least, ms. Absent
   * while they agree.
   */
  clockSkewMs: Schema.optionalKey(Schema.Number)
})
export type IntrospectionChunk = typeof IntrospectionChunk.Type

/** The answer of a partition's owner, joined from its chunks. */
export interface IntrospectionAnswer
  extends Pick<
    IntrospectionChunk,
    | "clockSkewMs"
    | "connection"
    | "endpoints"
    | "openCircuits"
    | "partition"
    | "since"
    | "task"
    | "tenants"
    | "watchedSince"
    | "worker"
  > {}

/** How long the owner of a partition may take for its first chunk, ms. */
const answerWithinMs = 1_000
/** How long the owner may take for each further chunk, ms: it is known to be there, and busy. */
const furtherChunkMs = 3_000
/** How long it may take to try a connection, ms: longer than the owner's own limit. */
const connectionMs = 25_000

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(IntrospectionChunk))

/**
 * Queries the owner of a partition. Returns undefined if there is no owner or it does not answer,
 * as during a takeover.
 */
export const queryOwner = Effect.fnUntraced(function* (
  partition: number,
  question: Omit<IntrospectionQuery, "v">
) {
  const { names } = yield* Broker
  const asked: IntrospectionQuery = { v: 1, ...question }
  const parts = yield* askInParts(
    names.subjects.ask(partition),
    asked,
    (text) => Option.getOrUndefined(decode(text)),
    {
      first: answerWithinMs,
      next: question.about === "connection" ? connectionMs : furtherChunkMs
    }
  )
  return parts === undefined ? undefined : joined(parts)
})

const joined = (parts: ReadonlyArray<IntrospectionChunk>): IntrospectionAnswer | undefined => {
  const [first] = parts
  return first === undefined
    ? undefined
    : {
        ...first,
        ...parts.at(-1),
        endpoints: parts.flatMap(({ endpoints }) => endpoints),
        tenants: parts.flatMap(({ tenants = [] }) => tenants)
      }
}
