import { Context, Effect, Option } from "effect"
import { timeText } from "../../domain/timestamp.ts"
import { RefusedRequests } from "../../metrics/refused-requests.ts"
import { Shares } from "../../policy/shares.ts"
import type { DeliveryLookup, LoggedDeliveries } from "../../projection/delivery-log.ts"
import { getRemotely } from "../../projection/remote-log.ts"
import { Caller } from "../caller.ts"
import { Busy } from "../failures.ts"
import { allTenants } from "../tokens/token.ts"

/**
 * Readings of the history at the same time in one console. Each takes the broker and the console's
 * thread some µs for every fact: more at once make all of them slower, and none sooner.
 */
const maxReadings = 4
/** How long one may take, ms. Who asks has left by then, or its proxy has. */
const readWithinMs = 30_000
/** Seconds after which another one is worth trying: most have ended by then. */
const retryAfter = 2
/** Seconds after which one that took too long is worth repeating: the load may be less then. */
const retrySlowAfter = 60

const insteadOfReading =
  "a console with the role projection has an index, and finds most things without"

/**
 * Bounds the readings of the history that callers of the API cause: by the tenant of the caller
 * before in all.
 */
export class HistoryReadings extends Context.Service<
  HistoryReadings,
  { readonly shares: Shares; readonly withinMs: number }
>()("petrel/operations/HistoryReadings") {
  /** @param withinMs how long one may take. (Default: 30 s) */
  static readonly make = (withinMs = readWithinMs) =>
    HistoryReadings.of({ shares: new Shares(maxReadings), withinMs })
}

/**
 * Reads the history for a caller of the API. Fails with Busy where its tenant, or all together, have
 * too many readings under way, or where it takes too long. Who reads it without an API, as the
 * command line does, is not bounded.
 */
export const readingHistory = <A, E, R>(
  reading: Effect.Effect<A, E, R>
): Effect.Effect<A, Busy | E, R> =>
  Effect.gen(function* () {
    const readings = yield* Effect.serviceOption(HistoryReadings)
    if (Option.isNone(readings)) return yield* reading
    const { shares, withinMs } = readings.value
    const caller = yield* Effect.serviceOption(Caller)
    const tenant = Option.match(caller, {
      onNone: () => allTenants,
      onSome: (one) => one.tenant
    })
    const refused = yield* RefusedRequests
    const busy = (message: string, after: number) =>
      Effect.suspend(() => {
        refused.note("history")
        return new Busy({ message, retryAfter: after })
      })
    return yield* Effect.acquireUseRelease(
      Effect.sync(() => shares.take(tenant)),
      (isTaken) =>
        isTaken
          ? Effect.timeoutOrElse(reading, {
              duration: withinMs,
              orElse: () =>
                busy(
                  `reading the history took longer than ${withinMs / 1_000} s and was broken off: ask for a shorter time, or for newer data; ${insteadOfReading}`,
                  retrySlowAfter
                )
            })
          : busy(
              `the history is being read for others already, as much as is done at once: try again; ${insteadOfReading}`,
              retryAfter
            ),
      (isTaken) => Effect.sync(() => (isTaken ? shares.give(tenant) : undefined))
    )
  })

/** A log that is further behind the history is not asked about one event or delivery, ms. */
const maxLagMs = 5_000

/** Asks a projection; undefined if none runs or it is too far behind. */
export const askLog = Effect.fnUntraced(function* (lookup: DeliveryLookup) {
  const found = yield* getRemotely(lookup).pipe(Effect.orElseSucceed(() => undefined))
  return found === undefined || found.lag.ms > maxLagMs ? undefined : found
})

/** Returns what a log that has nothing of an event cannot know, for people. */
const reachOf = ({ oldest }: Pick<LoggedDeliveries, "oldest">): string => {
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
