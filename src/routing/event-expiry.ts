import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { ageLimitMs, clockOf } from "../broker/kept-since.ts"
import { firstSince } from "../broker/scan.ts"

/** Time between two looks, ms; less where events are kept for less than an hour. */
const usualPauseMs = 60_000
const shortestPauseMs = 250

/** Returns the time between two looks for events that are kept for so long, ms. */
export const expiryPauseMs = (ageMs: number): number =>
  Math.max(shortestPauseMs, Math.min(usualPauseMs, ageMs / 60))

/**
 * Removes the events that were routed and are older than the installation keeps them. An age limit
 * of the stream would remove events that no router has taken, too: they were acknowledged, and
 * nobody would know of them.
 *
 * @returns the pause until it has to be done again, ms.
 */
export const expireRouted = Effect.gen(function* () {
  const { consumerInfo, names, purge, streamInfo } = yield* Broker
  const events = yield* streamInfo("look at the events", names.events)
  const ageMs = ageLimitMs(events.config)
  if (ageMs === 0) return usualPauseMs
  const pause = expiryPauseMs(ageMs)
  const { first_seq, first_ts, messages } = events.state
  const expired = clockOf(events) - ageMs
  if (messages === 0 || Date.parse(first_ts) >= expired) return pause
  const router = yield* consumerInfo("look at the router", names.events, names.routerConsumer)
  const seq = Math.min(router.ack_floor.stream_seq + 1, yield* firstSince(names.events, expired))
  if (seq > first_seq) yield* purge("remove expired events", names.events, { seq })
  return pause
})

/**
 * Does so for as long as the scope lives and this worker is the one to do it.
 *
 * @param holds true while it is.
 */
export const runEventExpiry = (holds: () => boolean) =>
  Effect.suspend(() => (holds() ? expireRouted : Effect.succeed(usualPauseMs))).pipe(
    Effect.catch((error) =>
      Effect.as(
        Effect.logWarning("cannot remove expired events; trying again", { why: error.message }),
        usualPauseMs
      )
    ),
    Effect.flatMap(Effect.sleep),
    Effect.forever
  )
