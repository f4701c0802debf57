import { Schema } from "effect"
import { Timestamp } from "./timestamp.ts"

/** Ids of missing events that a fact names. */
export const maxNamedMissing = 20

/**
 * What a comparison of a provider's list with what came in has found. Counts are of events. Each
 * that is listed came in, or is missing, or is too old for it to be known.
 */
export const Reconciliation = Schema.Struct({
  /** What was asked for. */
  since: Timestamp,
  until: Timestamp,
  listed: Schema.Int,
  /** Those of them that came in, or had been fetched before. */
  present: Schema.Int,
  missing: Schema.Int,
  /** Missing ones that were fetched and are events now. */
  fetched: Schema.Int,
  /** Missing ones that the provider was asked to send again. */
  asked: Schema.Int,
  /** Not known: neither INTAKE nor EVENTS goes back so far. They are not fetched. */
  tooOld: Schema.Int,
  /** The first missing ones, by their ids at the provider. */
  missingIds: Schema.Array(Schema.String),
  /** Why the first of those could not be had that were neither fetched nor asked for. */
  problem: Schema.optionalKey(Schema.String)
})
export type Reconciliation = typeof Reconciliation.Type
