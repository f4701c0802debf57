import { Effect, Option } from "effect"
import { DeliveryLog } from "../../projection/delivery-log.ts"
import type { ListedSum, SumsQuery } from "../../projection/log-sums.ts"
import { sumRemotely } from "../../projection/remote-log.ts"
import type { GroupsQuery, GroupTotals, TotalsQuery } from "./period-totals.ts"
import { groupTotals, periodTotals } from "./period-totals.ts"

/** Sums of a log that is further behind the history are not given for those of the history, ms. */
const maxLagMs = 5_000

/** Asks the log of this console for sums, or else the log of another one. */
export const askSums = Effect.fnUntraced(function* (query: SumsQuery) {
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
