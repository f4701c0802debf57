import { Context, Effect, Option } from "effect"
import { timeText } from "../../domain/timestamp.ts"
import { RefusedRequests } from "../../metrics/refused-requests.ts"
import {
  DeliveryLog,
  type DeliveryLookup,
  type LoggedDeliveries
} from "../../projection/delivery-log.ts"
import { getRemotely } from "../../projection/remote-log.ts"
import { Busy } from "../caller.ts"
import { inTenantTurn, TenantTurns } from "../tenant-turns.ts"

/**
 * Readings of the history at the same time in one console. Each takes the broker and the console's
 * thread some µs for every fact: more at once make all of them slower, and none sooner.
 */
const maxReadings = 4
/** How long one may take, ms. Who asks has left by then, or its proxy has. */
const readWithinMs = 30_000
/** Readings of one tenant that wait for their turn, and how long one waits, ms. */
const maxWaiting = 16
const turnWithinMs = 5_000
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
  { readonly turns: TenantTurns; readonly withinMs: number }
>()("petrel/operations/HistoryReadings") {
  /** @param withinMs how long one may take. (Default: 30 s) */
  static readonly make = (withinMs = readWithinMs) =>
    HistoryReadings.of({ turns: new TenantTurns(maxReadings, maxWaiting), withinMs })
}

/**
 * Reads the history for a caller of the API, in the turn of its tenant. Fails with Busy where too many
 * readings of the tenant wait, or where it takes too long. Who reads it without an API, as the command
 * line does, is not bounded.
 */
export const readingHistory = <A, E, R>(
  reading: Effect.Effect<A, E, R>
): Effect.Effect<A, Busy | E, R> =>
  Effect.gen(function* () {
    const readings = yield* Effect.serviceOption(HistoryReadings)
    if (Option.isNone(readings)) return yield* reading
    const { turns, withinMs } = readings.value
    const refused = yield* RefusedRequests
    const bounded = Effect.timeoutOrElse(reading, {
      duration: withinMs,
      orElse: () => {
        refused.note("history")
        return new Busy({
          message: `reading the history took longer than ${withinMs / 1_000} s and was stopped: ask for a shorter time, or for newer data; ${insteadOfReading}`,
          retryAfter: retrySlowAfter
        })
      }
    })
    return yield* inTenantTurn(bounded, turns, {
      bound: "history",
      why: `the history is being read for others already, as much as is done at once: try again; ${insteadOfReading}`,
      withinMs: turnWithinMs
    })
  })

/** A log that is further behind the history is not asked about one event or delivery, ms. */
const maxLagMs = 5_000

const isLevel = (found: LoggedDeliveries | undefined): boolean =>
  found !== undefined && found.lag.ms <= maxLagMs

/**
 * Asks the log of this console, or else that of another one; undefined if none runs, or none that is
 * near enough to the history.
 */
export const askLog = Effect.fnUntraced(function* (lookup: DeliveryLookup) {
  const own = Option.getOrUndefined(yield* Effect.serviceOption(DeliveryLog))
  const known =
    own === undefined ? undefined : yield* Effect.orElseSucceed(own.get(lookup), () => undefined)
  if (isLevel(known)) return known
  const found = yield* Effect.orElseSucceed(getRemotely(lookup), () => undefined)
  return isLevel(found) ? found : undefined
})

/** Returns what a log that has nothing of an event cannot know, for people. */
const reachOf = ({ oldest }: Pick<LoggedDeliveries, "oldest">): string => {
  const known =
    oldest === null
      ? "the log of deliveries is empty"
      : `the log of deliveries, which reaches back to ${timeText(oldest)}, has nothing of it`
  return `${known}, and an event that is not routed yet has no deliveries`
}

/**
 * Looks for what a log has nothing of. For callers of the API in those facts that the log has not taken
 * yet, as reading the whole history takes seconds and the log has what is newer; for the command line
 * in all facts, which reach back further.
 *
 * @param search in the facts after a sequence of the history, or in all; undefined if it finds nothing.
 * @param unknown what the caller of the API is told if there is nothing.
 */
export const searchBeyondLog = <A, E, R, B, E1, R1>(
  log: Pick<LoggedDeliveries, "oldest" | "position"> | undefined,
  search: (after?: number) => Effect.Effect<A | undefined, E, R>,
  unknown: (reach?: string) => Effect.Effect<B, E1, R1>
): Effect.Effect<A | B, Busy | E | E1, R | R1> =>
  Effect.flatMap(Effect.serviceOption(HistoryReadings), (readings) => {
    const known = Option.isSome(readings) ? log : undefined
    return Effect.flatMap(
      readingHistory(search(known?.position)),
      (found): Effect.Effect<A | B, E1, R1> =>
        found === undefined
          ? unknown(known === undefined ? undefined : reachOf(known))
          : Effect.succeed(found)
    )
  })
