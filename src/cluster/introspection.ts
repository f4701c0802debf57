import { Schema } from "effect"

/** What the owner of a partition is asked: for all of it, or for its endpoints one by one. */
export const IntrospectionQuery = Schema.Struct({
  v: Schema.Literal(1),
  about: Schema.Literals(["partition", "endpoints", "alerts"]),
  /** Only this tenant's. */
  tenant: Schema.optionalKey(Schema.String),
  /** Only this one of the tenant's. */
  endpoint: Schema.optionalKey(Schema.String),
  /** What alerts are made of is told of these tenants; where none is named, of all for which something failed. */
  tenants: Schema.optionalKey(Schema.Array(Schema.String))
})
export type IntrospectionQuery = typeof IntrospectionQuery.Type

/** What an endpoint has to do now, and how its attempts of the last hour went. */
export const EndpointActivity = Schema.Struct({
  tenant: Schema.String,
  endpoint: Schema.String,
  inFlight: Schema.Int,
  /** Standing in the line of its lane. */
  inLine: Schema.Int,
  attempts: Schema.Int,
  delivered: Schema.Int,
  /** Of the attempts, ms. */
  p50Ms: Schema.optionalKey(Schema.Number),
  p95Ms: Schema.optionalKey(Schema.Number)
})
export type EndpointActivity = typeof EndpointActivity.Type

/** The same of a partition. */
export const PartitionActivity = Schema.Struct({
  inFlight: Schema.Int,
  inLine: Schema.Int,
  /** Messages of the queue that its owner has taken and not settled. */
  prefetched: Schema.Int,
  /** Messages that its owner has found it cannot read; an older version does not say. */
  unreadable: Schema.optionalKey(Schema.Int),
  attempts: Schema.Int,
  delivered: Schema.Int,
  /** How many attempts fell into each step of the scale of durations. */
  durations: Schema.Array(Schema.Int)
})
export type PartitionActivity = typeof PartitionActivity.Type

/** How the deliveries of a tenant in a partition went, within the window of its alerts. */
export const TenantCounts = Schema.Struct({
  tenant: Schema.String,
  delivered: Schema.Int,
  /** Their first attempt failed, and they have not ended since. */
  pending: Schema.Int,
  /** Ended without success. */
  dead: Schema.Int
})
export type TenantCounts = typeof TenantCounts.Type

/** A part of what the owner says: an answer may be longer than a message. */
export const IntrospectionChunk = Schema.Struct({
  v: Schema.Literal(1),
  worker: Schema.String,
  /** When its count of the last hour begins, ms since the epoch. */
  since: Schema.Number,
  /** From 0. */
  part: Schema.Int,
  isLast: Schema.Boolean,
  partition: Schema.optionalKey(PartitionActivity),
  /** Endpoints whose circuit is not closed. */
  openCircuits: Schema.optionalKey(Schema.Int),
  /** When what alerts are made of began to be counted, ms since the epoch. */
  watchedSince: Schema.optionalKey(Schema.Number),
  tenants: Schema.optionalKey(Schema.Array(TenantCounts)),
  /** Those that have something to do or had attempts; of all others there is nothing to tell. */
  endpoints: Schema.Array(EndpointActivity)
})
export type IntrospectionChunk = typeof IntrospectionChunk.Type

/** What the owner of a partition said. */
export interface IntrospectionAnswer
  extends Pick<
    IntrospectionChunk,
    "endpoints" | "openCircuits" | "partition" | "since" | "tenants" | "watchedSince" | "worker"
  > {}
