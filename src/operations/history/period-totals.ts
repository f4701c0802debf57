import { Effect, Schema } from "effect"
import { Timestamp } from "../../domain/timestamp.ts"
import { Token } from "../../domain/token.ts"
import type { Group } from "../../history/fold/groups.ts"
import type { Quantiles, Spread } from "../../history/fold/summary.ts"
import type { Totals } from "../../history/fold/totals.ts"
import type { TenantTotals, TotalsProgress } from "../../history/totals.ts"
import { readGroups, readTotals } from "../../history/totals.ts"
import { shareOf } from "../../text/quantities.ts"

export const Period = Schema.Literals(["hour", "day"])
export const Grouping = Schema.Literals(["endpoint", "type"])

const selection = {
  tenant: Schema.optional(Token).annotateKey({ description: "The name of the tenant." }),
  since: Schema.optional(Timestamp),
  until: Schema.optional(Timestamp)
}

/** Which facts are summed up. Times in ms since the epoch, of when the broker stored a fact. */
export const TotalsQuery = Schema.Struct({
  ...selection,
  by: Period.annotateKey({ description: "Days are those of UTC." })
})
export type TotalsQuery = typeof TotalsQuery.Type

/** Which facts are summed up by endpoint or type. Times as in TotalsQuery. */
export const GroupsQuery = Schema.Struct({
  ...selection,
  by: Grouping.annotateKey({ description: "The length of the period, or what is summed up." }),
  limit: Schema.Int.annotateKey({
    description: "Maximum number of endpoints or types that are listed; the others are summed up."
  })
})
export type GroupsQuery = typeof GroupsQuery.Type

/** Durations in ms; null without any. Off by 5% at most, or by 0.1 ms. */
const QuantilesMs = Schema.NullOr(
  Schema.Struct({
    p50: Schema.Number.annotateKey({ description: "The median, ms." }),
    p90: Schema.Number.annotateKey({ description: "90% are not longer, ms." }),
    p99: Schema.Number.annotateKey({ description: "99% are not longer, ms." })
  })
)

const spreadFields = {
  attemptCounts: Schema.Record(Schema.String, Schema.Int).annotateKey({
    description:
      "Number of ended deliveries by the number of attempts that they took (`0`, `1`, `2`, `3-5`, `6-10`, `11-20`, `21+`), without empty groups."
  }),
  toSuccessMs: QuantilesMs.annotateKey({
    description:
      "From when the event was stored until it was delivered. Further rounds are left out."
  }),
  latencyMs: QuantilesMs.annotateKey({ description: "Of all attempts." })
}

/** How attempts, times until success and latencies are distributed. */
export const SpreadTotals = Schema.Struct(spreadFields)
export type SpreadTotals = typeof SpreadTotals.Type

const sums = {
  events: Schema.Int.annotateKey({ description: "Events that were routed." }),
  begun: Schema.Int.annotateKey({
    description: "Deliveries that plans, redeliveries and replays began."
  }),
  delivered: Schema.Int.annotateKey({ description: "Deliveries that ended with success." }),
  skipped: Schema.Int.annotateKey({
    description: "Deliveries that plans left out, as the endpoint was disabled."
  }),
  deliveredLate: Schema.Int.annotateKey({
    description: "Of those delivered: recorded by a former owner."
  }),
  retries: Schema.Int.annotateKey({
    description: "Attempts that were not the first of their round."
  }),
  deadLettered: Schema.Int.annotateKey({ description: "Deliveries that ended as dead letters." }),
  discarded: Schema.Int.annotateKey({ description: "Dead letters that were discarded." }),
  attempts: Schema.Int.annotateKey({ description: "Recorded requests." }),
  successRate: Schema.NullOr(Schema.Number).annotateKey({
    description: "Of the deliveries that ended, from 0 to 1; null if none did."
  }),
  meanAttempts: Schema.NullOr(Schema.Number).annotateKey({
    description: "Of the deliveries that ended, to two decimals; null if none did."
  }),
  ...spreadFields
}

/** What happened to a tenant's events within a period. */
export const PeriodTotals = Schema.Struct({
  begins: Timestamp.annotateKey({ description: "When the period begins." }),
  by: Period.annotateKey({ description: "The length of the period, or what is summed up." }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  ...sums
})
export type PeriodTotals = typeof PeriodTotals.Type

/** What happened to an endpoint, or with events of a type, or to all that are not listed. */
export const GroupTotals = Schema.Struct({
  by: Grouping.annotateKey({ description: "The length of the period, or what is summed up." }),
  name: Schema.NullOr(Schema.String).annotateKey({
    description: "`TENANT/ENDPOINT`, or the type; null in the remainder."
  }),
  others: Schema.optionalKey(Schema.Int).annotateKey({
    description: "In the remainder: how many endpoints or types it sums up."
  }),
  ...sums
})
export type GroupTotals = typeof GroupTotals.Type

const tenths = (found: Quantiles | undefined): typeof QuantilesMs.Type => {
  if (found === undefined) return null
  const rounded = (ms: number) => Math.round(ms * 10) / 10
  return { p50: rounded(found.p50), p90: rounded(found.p90), p99: rounded(found.p99) }
}

/** How attempts and durations are distributed, whatever has counted them. */
type Spreading = Pick<Spread, "attempts" | "latency" | "toSuccess">

const spreadTotals = ({ attempts, latency, toSuccess }: Spreading): SpreadTotals => ({
  attemptCounts: attempts,
  toSuccessMs: tenths(toSuccess),
  latencyMs: tenths(latency)
})

interface Sum {
  readonly totals: Totals
  readonly spread: Spreading
}

const sumsOf = ({ spread, totals }: Sum) => {
  const { attemptsFailed, attemptsOfEnded, begun, delivered, events, ...rest } = totals
  const ended = rest.deadLettered + delivered
  return {
    events,
    begun,
    delivered,
    ...rest,
    attempts: delivered + attemptsFailed,
    successRate: shareOf(delivered, ended),
    meanAttempts: ended === 0 ? null : Math.round((100 * attemptsOfEnded) / ended) / 100,
    ...spreadTotals(spread)
  }
}

/** Returns the totals of a period with what is computed from them. */
export const periodTotals = (
  { begins, tenant, ...sum }: Omit<TenantTotals, "spread"> & Sum,
  by: TotalsQuery["by"]
): PeriodTotals => ({ begins, by, tenant, ...sumsOf(sum) })

/** Returns the totals of a group; without a name, of all that are not listed. */
export const groupTotals = (
  { name, ...sum }: Sum & { readonly name: Group["name"] | null },
  by: GroupsQuery["by"]
): GroupTotals => ({
  by,
  name,
  ...sumsOf(sum)
})

/**
 * Sums up the history by tenant and period. Returns how all of it is distributed, and since when the
 * history has facts if it has dropped some that are meant (`keptSince`, ms since the epoch).
 *
 * @param give called with completed periods, in order.
 * @param progress called as the reading goes on.
 */
export const sumUpHistory = <E, R>(
  query: TotalsQuery,
  give: (complete: ReadonlyArray<PeriodTotals>) => Effect.Effect<void, E, R>,
  progress: (now: TotalsProgress) => void = () => {}
) =>
  Effect.map(
    readTotals(
      query,
      (complete) => give(complete.map((one) => periodTotals(one, query.by))),
      progress
    ),
    ({ keptSince, whole }) => ({ whole: spreadTotals(whole), keptSince })
  )

/**
 * Sums up the history by endpoint or type: those with most dead letters first, then with most
 * failed attempts, then with most deliveries. The last row sums up what is not listed. `keptSince` as
 * of `sumUpHistory`.
 *
 * @param progress called as the reading goes on.
 */
export const sumUpGroups = (
  { limit, ...query }: GroupsQuery,
  progress: (now: TotalsProgress) => void = () => {}
) =>
  Effect.map(readGroups(query, progress), ({ groups, keptSince, whole }) => {
    const { others, shown } = groups.top(limit)
    const rows = shown.map((group) => groupTotals(group, query.by))
    const remainder: ReadonlyArray<GroupTotals> =
      others === undefined
        ? []
        : [{ by: query.by, name: null, others: others.groups, ...sumsOf(others) }]
    return { rows: [...rows, ...remainder], whole: spreadTotals(whole), keptSince }
  })
