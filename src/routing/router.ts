import { Cause, Effect, Option } from "effect"
import { Broker } from "../broker/broker.ts"
import { makeInFlight } from "../broker/in-flight.ts"
import type { Layout } from "../broker/installed.ts"
import { PrefetchWindow } from "../broker/prefetch-window.ts"
import { PublishError } from "../broker/publisher.ts"
import type { Take } from "../broker/puller.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import { EndpointsNotCurrent } from "./directory-gate.ts"
import { EventRouting, makeRoutingServices } from "./event-routing.ts"
import type { OwnedPartitions } from "./fan-out.ts"
import { maxConcurrentStores } from "./fan-out.ts"
import { makePartialRoutings } from "./partial-routing.ts"
import { RoutingRecovery } from "./routing-recovery.ts"
import { makeWaitingRoom } from "./waiting-room.ts"

/**
 * Maximum deliveries of prefetched events. More would wait for places in their endpoints' lanes,
 * and go through the queue at twice the cost (docs/performance.md).
 */
const maxPrefetched = 256
/**
 * Number of deliveries that an event is assumed to have until the first events have been routed.
 */
const defaultParts = 8
/**
 * Pause before an event that could not be routed is redelivered, ms. Doubles with each delivery, at
 * most 6 times.
 */
const retryPauseMs = 5_000
/** Pause before an event whose routing has not begun is redelivered, ms. */
const giveBackPauseMs = 1_000

export interface RouterOptions {
  readonly worker: string
  readonly layout: Layout
  /** Maximum bytes of event bodies that the router holds. */
  readonly bytesInHand: number
  /**
   * Maximum bytes of event bodies in direct delivery, those outside the prefetch window included.
   */
  readonly directBytes: number
  readonly owned: OwnedPartitions
  readonly stopping: () => boolean
  /** False while this worker's clock may be wrong: plans carry deadlines. */
  readonly isClockTrusted: () => boolean
}

/**
 * Turns events into deliveries until the worker stops; then finishes the events that it has begun.
 *
 * For each event, the router stores the plan as a `routed` fact. Each delivery is then attempted
 * directly where this worker can do so promptly, stored in its endpoint's backlog where it must
 * wait there, or stored in its partition's queue. Then the router acknowledges the event. A worker
 * that takes over in between follows the stored plan.
 */
export const runRouter = Effect.fnUntraced(function* (options: RouterOptions) {
  const { layout, stopping } = options
  const { largestMessage, names, pull } = yield* Broker
  const prefetch = new PrefetchWindow({
    deliveries: maxPrefetched,
    bytes: options.bytesInHand,
    usualParts: defaultParts
  })
  yield* prefetch.keepAlive(layout.ackWait)
  const begun = yield* makePartialRoutings(layout.partitions)
  const services = yield* makeRoutingServices(options)
  const { endpoints } = services
  const routing = yield* EventRouting.make(services)
  const recovery = yield* RoutingRecovery.make(services)
  const inFlightWork = yield* makeInFlight<Broker>()
  /** Storage time of each event in flight, by sequence: a truncated stream reuses sequences. */
  const working = new Map<number, number>()

  const waitingRoom = yield* makeWaitingRoom(layout.partitions, () => prefetch.deliveryBytes)

  const take: Take = (message, header) => {
    // The event is in flight here already, and may be in an attempt. Acknowledging one copy settles
    // both.
    if (working.get(message.seq) === message.storedAt) return
    working.set(message.seq, message.storedAt)
    const hand = prefetch.take(message)
    const parts = prefetch.usualParts
    waitingRoom.routed(message.data.length, parts)
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
      routing.route(message, header, work, {
        goesTo: (deliveries) => {
          prefetch.weigh(hand, Math.min(deliveries, maxConcurrentStores))
          waitingRoom.routed(message.data.length, deliveries - parts)
        },
        onFallback: (routingProgress) =>
          work.continueInFiber(careful(recovery.route(message, header, routingProgress))),
        onSlow: (remaining) => prefetch.exclude(hand, remaining)
      })
    } else {
      // Look the event up only after the wait for the endpoints, so that the result is current.
      const known = Effect.andThen(endpoints.pass, begun.of(event, redelivered))
      const routed = Effect.flatMap(known, (known) => recovery.route(message, header, { known }))
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
      const budget = yield* waitingRoom.budget
      if (budget === undefined) return
      if (!options.isClockTrusted()) {
        yield* Effect.sleep("1 second")
        return
      }
      yield* prefetch.hasCapacity
      if (!(yield* endpoints.look)) return
      return prefetch.capacityWithin(budget, largestMessage())
    })
  })
  yield* inFlightWork.none
})

/**
 * Redelivers an event that could not be routed. The next try searches for what was stored of it.
 */
const comeBackOnFailure = <E, R>(message: StreamMessage, routed: Effect.Effect<void, E, R>) => {
  const comeBack = Effect.sync(() => {
    const times = Math.min(message.deliveryCount - 1, 6)
    message.nak(retryPauseMs * 2 ** times)
  })
  const giveBack = Effect.sync(() => {
    // Without a pause it could come back here while the worker stops.
    message.nak(giveBackPauseMs)
  })
  return routed.pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) => {
        const why = Cause.squash(cause)
        // The directory gate has logged this, once for all events that wait.
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
