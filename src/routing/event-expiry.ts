import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { routerConsumer } from "../broker/consumers.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { ageLimitMs, clockOf } from "../broker/kept-since.ts"
import { restrictionsOfConsumer } from "../broker/restrictions.ts"
import { notePosition } from "../broker/router-position.ts"
import { firstSince } from "../broker/scan.ts"

/** Time between two looks, ms; less where events are kept for less than some minutes. */
const usualPauseMs = 10_000
const shortestPauseMs = 250

/**
 * Removes the events that were routed and are older than the installation keeps them. An age limit
 * of the stream would remove events that no router has taken, too: they were acknowledged, and
 * nobody would know of them.
 *
 * @returns up to which sequence all events are routed, 0 if that is not known, and the pause until the next look, ms.
 */
export const expireRouted = Effect.gen(function* () {
  const { consumerInfo, names, purge, streamInfo } = yield* Broker
  const router = yield* consumerInfo("look at the router", names.events, names.routerConsumer)
  // A consumer that somebody has given a filter passes over events without anybody routing them.
  const isWhole = restrictionsOfConsumer(router, routerConsumer(names, 0)).every(
    (field) => !field.startsWith("filter_")
  )
  const routedTo = isWhole ? router.ack_floor.stream_seq : 0
  const events = yield* streamInfo("look at the events", names.events)
  const ageMs = ageLimitMs(events.config)
  const pauseMs =
    ageMs === 0 ? usualPauseMs : Math.max(shortestPauseMs, Math.min(usualPauseMs, ageMs / 60))
  const { first_seq, first_ts, messages } = events.state
  const expired = clockOf(events) - ageMs
  if (isWhole && ageMs > 0 && messages > 0 && Date.parse(first_ts) < expired) {
    const seq = Math.min(routedTo + 1, yield* firstSince(names.events, expired))
    if (seq > first_seq) yield* purge("remove expired events", names.events, { seq })
  }
  return { pauseMs, routedTo }
})

/**
 * Removes expired events, and notes how far routing has come, for as long as the scope lives and
 * this worker is the one to do it.
 *
 * @param holds true while it is.
 */
export const runEventExpiry = (holds: () => boolean) => {
  let noted = 0
  const look = Effect.gen(function* () {
    if (!holds()) return usualPauseMs
    const { pauseMs, routedTo } = yield* expireRouted
    if (routedTo > 0 && routedTo !== noted) yield* notePosition(routedTo)
    noted = routedTo
    return pauseMs
  })
  return keepGoing(
    "remove expired events",
    Effect.flatMap(look, Effect.sleep),
    usualPauseMs,
    Effect.logWarning
  )
}
