import { Schema } from "effect"
import { Timestamp } from "../domain/timestamp.ts"
import { Token } from "../domain/token.ts"

/** What sums are listed by. */
const SumsBy = Schema.Literals(["hour", "day", "endpoint", "type"])

/**
 * Which hours are summed up: those that the times fall into count as a whole. A fact counts for the
 * hour in which the broker stored it.
 */
export const SumsQuery = Schema.Struct({
  /** (Default: every tenant) */
  tenant: Schema.optionalKey(Token),
  /** Of the tenant. By hour or day only. */
  endpoint: Schema.optionalKey(Token),
  since: Timestamp,
  until: Timestamp,
  /** Days are those of UTC. */
  by: SumsBy,
  /** Endpoints or types that are listed; the others are summed up. (Default: 50) */
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 })))
})
export type SumsQuery = typeof SumsQuery.Type

/** Ms; null without any. Within 5% of the exact ones, or within 0.1 ms. */
const Quantiles = Schema.NullOr(
  Schema.Struct({ p50: Schema.Number, p90: Schema.Number, p95: Schema.Number, p99: Schema.Number })
)

/** What facts come to. */
export const LoggedSum = Schema.Struct({
  totals: Schema.Struct({
    events: Schema.Int,
    begun: Schema.Int,
    skipped: Schema.Int,
    delivered: Schema.Int,
    deliveredLate: Schema.Int,
    attemptsFailed: Schema.Int,
    retries: Schema.Int,
    deadLettered: Schema.Int,
    attemptsOfEnded: Schema.Int,
    discarded: Schema.Int
  }),
  /** Attempts by the class of their answer, `none` for those without one. */
  answers: Schema.Record(Schema.String, Schema.Int),
  attemptCounts: Schema.Record(Schema.String, Schema.Int),
  toSuccess: Quantiles,
  latency: Quantiles
})
export type LoggedSum = typeof LoggedSum.Type

/** A sum of the list: of a period, or of an endpoint or type, or of all that are not listed. */
export const ListedSum = Schema.Struct({
  ...LoggedSum.fields,
  /** When the period begins. */
  begins: Schema.optionalKey(Timestamp),
  tenant: Schema.optionalKey(Schema.String),
  /** `TENANT/ENDPOINT` or the type; null in the sum of the others. */
  name: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** How many are not listed. */
  others: Schema.optionalKey(Schema.Int)
})
export type ListedSum = typeof ListedSum.Type

/** Sums of the log. Periods and tenants in which nothing happened are left out. */
export const LoggedSums = Schema.Struct({
  sums: Schema.Array(ListedSum),
  whole: LoggedSum,
  /** The beginning of the oldest hour that the log has sums of; null without any. */
  oldestHour: Schema.NullOr(Timestamp)
})
export type LoggedSums = typeof LoggedSums.Type
