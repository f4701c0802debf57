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
  tenant: Schema.optionalKey(Token).annotateKey({ description: "(Default: every tenant)" }),
  endpoint: Schema.optionalKey(Token).annotateKey({
    description: "Of the tenant. By hour or day only."
  }),
  since: Timestamp,
  until: Timestamp,
  by: SumsBy.annotateKey({ description: "Days are those of UTC." }),
  limit: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 }))
  ).annotateKey({
    description: "Endpoints or types that are listed; the others are summed up. (Default: 50)"
  })
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
    deadLettered: Schema.Int.annotateKey({ description: "Deliveries that ended as dead letters." }),
    attemptsOfEnded: Schema.Int,
    discarded: Schema.Int.annotateKey({ description: "Dead letters that were discarded." })
  }),
  answers: Schema.Record(Schema.String, Schema.Int).annotateKey({
    description: "Attempts by the class of their answer, `none` for those without one."
  }),
  attemptCounts: Schema.Record(Schema.String, Schema.Int),
  toSuccess: Quantiles,
  latency: Quantiles
})
export type LoggedSum = typeof LoggedSum.Type

/** A sum of the list: of a period, or of an endpoint or type, or of all that are not listed. */
export const ListedSum = Schema.Struct({
  ...LoggedSum.fields,
  begins: Schema.optionalKey(Timestamp).annotateKey({ description: "When the period begins." }),
  tenant: Schema.optionalKey(Schema.String).annotateKey({ description: "The name of the tenant." }),
  name: Schema.optionalKey(Schema.NullOr(Schema.String)).annotateKey({
    description: "`TENANT/ENDPOINT` or the type; null in the sum of the others."
  }),
  others: Schema.optionalKey(Schema.Int).annotateKey({ description: "How many are not listed." })
})
export type ListedSum = typeof ListedSum.Type

/** Sums of the log. Periods and tenants in which nothing happened are left out. */
export const LoggedSums = Schema.Struct({
  sums: Schema.Array(ListedSum),
  whole: LoggedSum,
  oldestHour: Schema.NullOr(Timestamp).annotateKey({
    description: "The beginning of the oldest hour that the log has sums of; null without any."
  })
})
export type LoggedSums = typeof LoggedSums.Type
