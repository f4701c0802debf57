import { type Effect, Schema } from "effect"
import { Token } from "../../domain/token.ts"
import type { TenantTotals, TotalsProgress } from "../../history/totals.ts"
import { readTotals } from "../../history/totals.ts"
import { shareOf } from "../text/number-format.ts"

export const Period = Schema.Literals(["hour", "day"])

/** Which facts are summed up. Times in ms since the epoch, of when the broker stored a fact. */
export const TotalsQuery = Schema.Struct({
  tenant: Schema.optional(Token),
  since: Schema.optional(Schema.Number),
  until: Schema.optional(Schema.Number),
  /** Days are those of UTC. */
  by: Period
})
export type TotalsQuery = typeof TotalsQuery.Type

/** What happened to a tenant's events within a period. */
export const PeriodTotals = Schema.Struct({
  /** ms since the epoch. */
  begins: Schema.Number,
  by: Period,
  tenant: Schema.String,
  /** Events that were routed. */
  events: Schema.Int,
  /** Deliveries that plans, redeliveries and replays began. */
  begun: Schema.Int,
  delivered: Schema.Int,
  /** Deliveries that plans left out, as the endpoint was disabled. */
  skipped: Schema.Int,
  /** Of those delivered: recorded by a former owner. */
  deliveredLate: Schema.Int,
  /** Attempts that were not the first of their round. */
  retries: Schema.Int,
  deadLettered: Schema.Int,
  discarded: Schema.Int,
  attempts: Schema.Int,
  /** Of the deliveries that ended, from 0 to 1; null if none did. */
  successRate: Schema.NullOr(Schema.Number),
  /** Of the deliveries that ended, to two decimals; null if none did. */
  meanAttempts: Schema.NullOr(Schema.Number)
})
export type PeriodTotals = typeof PeriodTotals.Type

/** Returns the totals of a period with what is computed from them. */
export const periodTotals = (
  { begins, tenant, totals }: TenantTotals,
  by: TotalsQuery["by"]
): PeriodTotals => {
  const { attemptsFailed, attemptsOfEnded, begun, delivered, events, ...rest } = totals
  const ended = rest.deadLettered + delivered
  return {
    begins,
    by,
    tenant,
    events,
    begun,
    delivered,
    ...rest,
    attempts: delivered + attemptsFailed,
    successRate: shareOf(delivered, ended),
    meanAttempts: ended === 0 ? null : Math.round((100 * attemptsOfEnded) / ended) / 100
  }
}

/**
 * Sums up the history by tenant and period.
 *
 * @param give called with completed periods, in order.
 * @param progress called as the reading goes on.
 */
export const sumUpHistory = <E, R>(
  query: TotalsQuery,
  give: (complete: ReadonlyArray<PeriodTotals>) => Effect.Effect<void, E, R>,
  progress: (now: TotalsProgress) => void = () => {}
) =>
  readTotals(
    query,
    (complete) => give(complete.map((one) => periodTotals(one, query.by))),
    progress
  )
