import { Effect, Option } from "effect"
import { timeText } from "../../domain/timestamp.ts"
import type { DeliveryLookup, LoggedDeliveries } from "../../projection/delivery-log.ts"
import { getRemotely } from "../../projection/remote-log.ts"
import { HistoryReadings } from "./history-readings.ts"

/** A log that is further behind the history is not asked about one event or delivery, ms. */
const maxLagMs = 5_000

/** Asks a projection; undefined if none runs or it is too far behind. */
export const askLog = Effect.fnUntraced(function* (lookup: DeliveryLookup) {
  const found = yield* getRemotely(lookup).pipe(Effect.orElseSucceed(() => undefined))
  return found === undefined || found.lag.ms > maxLagMs ? undefined : found
})

/** Returns what a log that has nothing of an event cannot know, for people. */
export const reachOf = ({ oldest }: Pick<LoggedDeliveries, "oldest">): string => {
  const reach =
    oldest === null ? "which has no delivery yet" : `which reaches back to ${timeText(oldest)}`
  return `the log of deliveries has nothing of it, ${reach}; what has just been published, or is not routed yet, is in the stream of events only`
}

/**
 * Goes on where a log has nothing of what is asked for. Callers of the API are told so, as reading
 * the history takes seconds and the log has what is newer; the command line reads the history, which
 * reaches back further.
 */
export const unlessLogged = <A, E, R, A1, E1, R1>(
  log: Pick<LoggedDeliveries, "oldest"> | undefined,
  unknown: (reach: string) => Effect.Effect<A1, E1, R1>,
  reading: Effect.Effect<A, E, R>
): Effect.Effect<A | A1, E | E1, R | R1> =>
  Effect.flatMap(
    Effect.serviceOption(HistoryReadings),
    (readings): Effect.Effect<A | A1, E | E1, R | R1> =>
      log !== undefined && Option.isSome(readings) ? unknown(reachOf(log)) : reading
  )
