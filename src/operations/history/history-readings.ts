import { Context, Effect, Option } from "effect"
import { RefusedRequests } from "../../metrics/refused-requests.ts"
import { Shares } from "../../policy/shares.ts"
import { Busy } from "../busy.ts"
import { Caller } from "../caller.ts"
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
                  `reading the history took longer than ${withinMs / 1_000} s and was broken off: ask for a shorter time, or of what is newer; ${insteadOfReading}`,
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
