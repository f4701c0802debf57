import { Cause, Effect, Option } from "effect"
import { Broker } from "../broker/connection.ts"
import { makeInFlight } from "../broker/in-flight.ts"
import type { Layout } from "../broker/installed.ts"
import { PrefetchWindow } from "../broker/prefetch-window.ts"
import { PublishError } from "../broker/publisher.ts"
import { pull } from "../broker/pull.ts"
import type { Take } from "../broker/puller.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import { EndpointsNotCurrent } from "./directory-gate.ts"
import type { OwnedPartitions } from "./fan-out.ts"
import { makePartialRoutings } from "./partial-routing.ts"
import { makeRoute } from "./route.ts"
import { makeWaitingRoom } from "./waiting-room.ts"

/**
 * Deliveries of the events in hand. More would wait for places in their endpoints' lines, and go
 * through the queue at twice the cost (docs/performance.md).
 */
const maxPrefetched = 256
/** For how many an event is taken before the first ones have been routed. */
const defaultParts = 8
/** Pause before an event that could not be routed is tried again, ms. */
const retryPauseMs = 5_000
/** The same before one that nobody has begun is handed out again, ms. */
const giveBackPauseMs = 1_000

export interface RouterOptions {
  readonly worker: string
  readonly layout: Layout
  /** Bodies of events that it holds at most, bytes. */
  readonly bytesInHand: number
  /** Of those that are attempted, whether they count as in hand or not. */
  readonly bytesStraight: number
  readonly owned: OwnedPartitions
  readonly stopping: () => boolean
}

/**
 * Turns events into deliveries until it is told to stop; then finishes those it has begun.
 *
 * For each event: the plan is stored as a `routed` fact; then each delivery is attempted directly from
 * the event, where this worker may do that in a moment, stored in its endpoint's backlog, where it must
 * wait there, or stored in its partition's queue; then the event is acknowledged. Whoever takes over
 * in between follows the stored plan.
 */
export const runRouter = Effect.fnUntraced(function* (options: RouterOptions) {
  const { layout, stopping } = options
  const { names } = yield* Broker
  const prefetch = new PrefetchWindow({
    deliveries: maxPrefetched,
    bytes: options.bytesInHand,
    usualParts: defaultParts
  })
  yield* prefetch.keepAlive(layout.ackWait)
  const begun = yield* makePartialRoutings(layout.partitions)
  const route = yield* makeRoute(options)
  const inFlightWork = yield* makeInFlight<Broker>()
  /** When each of those in hand was stored, by its sequence, which a broker that lost its end gives again. */
  const working = new Map<number, number>()

  const waitingRoom = yield* makeWaitingRoom(layout.partitions)

  const take: Take = (message, header) => {
    // In hand already, and perhaps being attempted: its answer settles this one, too.
    if (working.get(message.seq) === message.storedAt) return
    working.set(message.seq, message.storedAt)
    const hand = prefetch.take(message)
    waitingRoom.routed(message.data.length, 1)
    const ended = () => {
      if (working.get(message.seq) === message.storedAt) working.delete(message.seq)
      prefetch.release(hand)
    }
    const redelivered = message.deliveryCount > 1
    const careful = (routed: Effect.Effect<void, unknown, Broker>) =>
      comeBackOnFailure(message, routed)
    const event = { eventSeq: message.seq, eventAt: message.storedAt }
    if (begun.isNew(event, redelivered)) {
      const work = inFlightWork.begin(ended, (defect) => careful(Effect.die(defect)))
      route.routeFast(message, header, work, {
        goesTo: (deliveries) => {
          prefetch.weigh(hand, deliveries)
          waitingRoom.routed(message.data.length, deliveries - 1)
        },
        onFallback: (routingProgress) =>
          work.continueInFiber(careful(route.routeRecovering(message, header, routingProgress))),
        onSlow: () => prefetch.exclude(hand)
      })
    } else {
      // What is known of it must not grow old while the endpoints are waited for.
      const known = Effect.andThen(route.endpoints.pass, begun.of(event, redelivered))
      const routed = Effect.flatMap(known, (known) =>
        route.routeRecovering(message, header, { known })
      )
      inFlightWork.run(careful(routed), ended)
    }
  }
  yield* pull({
    name: "the router",
    stream: names.events,
    consumer: names.routerConsumer,
    stopping,
    take,
    tooLarge: (wanted) => prefetch.tooLarge(wanted),
    room: Effect.gen(function* () {
      const known = yield* begun.ready.pipe(
        Effect.tapError((error) =>
          Effect.logWarning("cannot look what was handed out", { why: error.message })
        ),
        Effect.option
      )
      if (Option.isNone(known)) {
        yield* Effect.sleep("1 second")
        return
      }
      if (!(yield* waitingRoom.hasRoom)) return
      yield* prefetch.hasCapacity
      return (yield* route.endpoints.look) ? prefetch.capacity : undefined
    })
  })
  yield* inFlightWork.none
})

/** An event that could not be routed comes back; what of it was stored must be looked for then. */
const comeBackOnFailure = <E, R>(message: StreamMessage, routed: Effect.Effect<void, E, R>) => {
  const comeBack = Effect.sync(() => {
    const times = Math.min(message.deliveryCount - 1, 6)
    message.nak(retryPauseMs * 2 ** times)
  })
  const giveBack = Effect.sync(() => {
    // At once it could come here again, while a worker stops.
    message.nak(giveBackPauseMs)
  })
  return routed.pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) => {
        const why = Cause.squash(cause)
        // These have been told of, once for all events that wait.
        if (why instanceof EndpointsNotCurrent) return giveBack
        if (why instanceof PublishError) return comeBack
        return Effect.andThen(
          Effect.logError("an event could not be routed; it is tried again", cause, {
            seq: message.seq
          }),
          comeBack
        )
      }
    )
  )
}
