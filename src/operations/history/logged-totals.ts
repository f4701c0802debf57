import { Clock, Duration, Effect, Option, Schema } from "effect"
import { Invalid } from "../../domain/problem.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { beginningOf, periods } from "../../history/fold/totals.ts"
import { DeliveryLog, Lag } from "../../projection/delivery-log.ts"
import type { ListedSum, LoggedSum, SumsQuery } from "../../projection/log-sums.ts"
import { sumRemotely } from "../../projection/remote-log.ts"
import { shareOf } from "../../text/quantities.ts"
import { rangeProblems } from "../parameters.ts"
import {
  type GroupsQuery,
  type GroupTotals,
  groupTotals,
  Period,
  periodTotals,
  type TotalsQuery
} from "./period-totals.ts"

/** Sums of a log that is further behind the history are not given for those of the history, ms. */
const maxLagMs = 5_000

/** Asks the log of this console for sums, or else the log of another one. */
const askSums = Effect.fnUntraced(function* (query: SumsQuery) {
  const log = yield* Effect.serviceOption(DeliveryLog)
  return yield* Option.match(log, {
    onNone: () => sumRemotely(query),
    onSome: ({ sums }) => sums(query)
  })
})

const partsOf = ({ attemptCounts, latency, toSuccess, totals }: ListedSum) => ({
  totals,
  spread: {
    attempts: attemptCounts,
    toSuccess: toSuccess ?? undefined,
    latency: latency ?? undefined
  }
})

/** Returns sums; undefined where no log runs, or it is too far behind. */
const askLevel = Effect.fnUntraced(function* (query: SumsQuery) {
  const found = yield* askSums(query).pipe(
    Effect.catchTag("LogUnavailable", () => Effect.undefined)
  )
  return found === undefined || found.lag.ms > maxLagMs ? undefined : found
})

/** Returns totals by period as the log has them; undefined where none runs, or it is behind. */
export const logPeriods = Effect.fnUntraced(function* (query: SumsQuery & TotalsQuery) {
  const found = yield* askLevel(query)
  if (found === undefined) return undefined
  const { lag, oldestHour, sums } = found
  const totals = sums.map((sum) => {
    const { begins = 0, tenant = "" } = sum
    return periodTotals({ begins, tenant, ...partsOf(sum) }, query.by)
  })
  return { totals, oldestHour, lag }
})

/** Returns totals by endpoint or type as the log has them; undefined as for periods. */
export const logGroups = Effect.fnUntraced(function* (query: SumsQuery & GroupsQuery) {
  const found = yield* askLevel(query)
  if (found === undefined) return undefined
  const { lag, oldestHour, sums } = found
  const totals = sums.map((sum): GroupTotals => {
    const { name = null, others } = sum
    const group = groupTotals({ name, ...partsOf(sum) }, query.by)
    return { ...group, ...(others === undefined ? {} : { others }) }
  })
  return { totals, oldestHour, lag }
})

const stats = {
  attempts: Schema.Int.annotateKey({ description: "Recorded requests." }),
  succeeded: Schema.Int.annotateKey({ description: "Those that succeeded." }),
  failed: Schema.Int.annotateKey({ description: "Those that failed." }),
  successRate: Schema.NullOr(Schema.Number).annotateKey({
    description: "Of the attempts, from 0 to 1; null without any."
  }),
  answers: Schema.Record(Schema.String, Schema.Int).annotateKey({
    description: "Attempts by the class of their answer: `2xx`, …, `none` without one."
  }),
  /** Of all attempts; null without any. */
  latencyMs: Schema.NullOr(
    Schema.Struct({
      p50: Schema.Number.annotateKey({ description: "The median, ms." }),
      p95: Schema.Number.annotateKey({ description: "95% are not longer, ms." }),
      p99: Schema.Number.annotateKey({ description: "99% are not longer, ms." })
    })
  ).annotateKey({ description: "How long they took, ms; null without any." })
}

/** What the attempts of an hour or a day came to. */
export const PeriodStats = Schema.Struct({
  begins: Timestamp.annotateKey({ description: "When the period begins." }),
  ...stats
})
export type PeriodStats = typeof PeriodStats.Type

/** What the attempts at an endpoint, or of a tenant, came to. */
export const Stats = Schema.Struct({
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.optionalKey(Schema.String).annotateKey({
    description: "The id of the endpoint."
  }),
  by: Period.annotateKey({ description: "The length of the periods." }),
  since: Timestamp.annotateKey({ description: "The beginning of the first hour that is counted." }),
  until: Timestamp.annotateKey({ description: "Up to when." }),
  whole: Schema.Struct(stats),
  periods: Schema.Array(PeriodStats).annotateKey({
    description: "Oldest first, those without attempts too."
  }),
  lag: Lag.annotateKey({ description: "How far the log is behind the history." })
})
export type Stats = typeof Stats.Type

/** What is asked for. Times in ms since the epoch; whole hours count. */
interface StatsQuery {
  readonly tenant: string
  readonly endpoint?: string
  /** (Default: a day ago) */
  readonly since?: number
  /** (Default: now) */
  readonly until?: number
  /** (Default: hour) */
  readonly by?: "hour" | "day"
}

const nothing: LoggedSum = {
  totals: {
    ...{ events: 0, begun: 0, skipped: 0, delivered: 0, deliveredLate: 0, attemptsFailed: 0 },
    ...{ retries: 0, deadLettered: 0, attemptsOfEnded: 0, discarded: 0 }
  },
  answers: {},
  attemptCounts: {},
  toSuccess: null,
  latency: null
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10

const statsOf = ({ answers, latency, totals }: LoggedSum) => {
  const { attemptsFailed: failed, delivered: succeeded } = totals
  const attempts = succeeded + failed
  return {
    attempts,
    succeeded,
    failed,
    successRate: shareOf(succeeded, attempts),
    answers,
    latencyMs:
      latency === null
        ? null
        : { p50: tenths(latency.p50), p95: tenths(latency.p95), p99: tenths(latency.p99) }
  }
}

/**
 * Returns what attempts came to, by hour or day, from the sums of the log alone. Fails with
 * LogUnavailable where no console has one, and with Invalid for an empty range.
 */
export const readStats = Effect.fnUntraced(function* (query: StatsQuery) {
  const now = yield* Clock.currentTimeMillis
  const { by = "hour", since = now - Duration.toMillis("1 day"), tenant, until = now } = query
  const problems = rangeProblems({ since, until }, now)
  if (problems.length > 0) return yield* new Invalid({ problems })
  const of = { tenant, ...(query.endpoint === undefined ? {} : { endpoint: query.endpoint }) }
  const found = yield* askSums({ ...of, since, until, by })
  const { lag, oldestHour, sums, whole } = found
  const first = Math.max(beginningOf(since, "hour"), oldestHour ?? until)
  const known = new Map(sums.map((sum) => [sum.begins, sum]))
  const listed: Array<PeriodStats> = []
  const last = Math.min(until, now)
  for (let begins = beginningOf(first, by); begins <= last; begins += periods[by])
    listed.push({ begins, ...statsOf(known.get(begins) ?? nothing) })
  return { ...of, by, since: first, until, whole: statsOf(whole), periods: listed, lag }
})
