import { Cause, Effect, Option } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { Layout } from "../../broker/installed.ts"
import { PublishError } from "../../broker/publisher.ts"
import type { Take } from "../../broker/puller.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import { InHand } from "../lanes/in-hand.ts"
import { pull } from "../lanes/pull.ts"
import { makeUnderway } from "../underway.ts"
import { makeBegun } from "./begun.ts"
import { EndpointsNotCurrent } from "./directory-gate.ts"
import type { Owned } from "./fan-out.ts"
import { makeRoute } from "./route.ts"
import { makeWaitingRoom } from "./waiting-room.ts"

/**
 * Deliveries of the events in hand. More would wait for places in their endpoints' lines, and go
 * through the queue at twice the cost (docs/performance.md).
 */
const mostInHand = 256
/** For how many an event is taken before the first ones have been routed. */
const usualParts = 8
/** Pause before an event that could not be routed is tried again, ms. */
const retryPause = 5_000
/** The same before one that nobody has begun is handed out again, ms. */
const giveBackPause = 1_000

export interface RouterOptions {
  readonly worker: string
  readonly layout: Layout
  /** Bodies of events that it holds at most, bytes. */
  readonly bytesInHand: number
  /** Of those that are attempted, whether they count as in hand or not. */
  readonly bytesStraight: number
  readonly owned: Owned
  readonly stopping: () => boolean
}

/**
 * Turns events into deliveries until it is told to stop; then finishes those it has begun.
 *
 * For each event: the plan is stored as a `routed` fact; then each delivery is attempted straight from
 * the event, where this worker may do that in a moment, stored in its endpoint's backlog, where it must
 * wait there, or stored in its partition's queue; then the event is acknowledged. Whoever takes over
 * in between follows the stored plan.
 */
export const runRouter = Effect.fnUntraced(function* (options: RouterOptions) {
  const { layout, stopping } = options
  const { names } = yield* Broker
  const inHand = new InHand({ deliveries: mostInHand, bytes: options.bytesInHand, usualParts })
  yield* inHand.keepAlive(layout.ackWait)
  const begun = yield* makeBegun(layout.partitions)
  const route = yield* makeRoute(options)
  const underway = yield* makeUnderway<Broker>()
  /** When each of those in hand was stored, by its sequence, which a broker that lost its end gives again. */
  const working = new Map<number, number>()

  const waitingRoom = yield* makeWaitingRoom(layout.partitions)

  const take: Take = (message, header) => {
    // In hand already, and perhaps being attempted: its answer settles this one, too.
    if (working.get(message.seq) === message.storedAt) return
    working.set(message.seq, message.storedAt)
    const hand = inHand.take(message)
    waitingRoom.routed(message.data.length, 1)
    const ended = () => {
      if (working.get(message.seq) === message.storedAt) working.delete(message.seq)
      inHand.release(hand)
    }
    const redelivered = message.handedOut > 1
    const careful = (routed: Effect.Effect<void, unknown, Broker>) =>
      comeBackOnFailure(message, routed)
    const event = { eventSeq: message.seq, eventAt: message.storedAt }
    if (begun.isNew(event, redelivered)) {
      const work = underway.begin(ended, (defect) => careful(Effect.die(defect)))
      route.plainly(message, header, work, {
        goesTo: (deliveries) => {
          inHand.weigh(hand, deliveries)
          waitingRoom.routed(message.data.length, deliveries - 1)
        },
        otherwise: (sofar) => work.goOn(careful(route.carefully(message, header, sofar))),
        lasts: () => inHand.setApart(hand)
      })
    } else {
      // What is known of it must not grow old while the endpoints are waited for.
      const known = Effect.andThen(route.endpoints.pass, begun.of(event, redelivered))
      const routed = Effect.flatMap(known, (known) => route.carefully(message, header, { known }))
      underway.run(careful(routed), ended)
    }
  }
  yield* pull({
    name: "the router",
    stream: names.events,
    consumer: names.routerConsumer,
    stopping,
    take,
    tooLarge: (wanted) => inHand.tooLarge(wanted),
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
      yield* inHand.roomy
      return (yield* route.endpoints.look) ? inHand.room : undefined
    })
  })
  yield* underway.none
})

/** An event that could not be routed comes back; what of it was stored must be looked for then. */
const comeBackOnFailure = <E, R>(message: StreamMessage, routed: Effect.Effect<void, E, R>) => {
  const comeBack = Effect.sync(() => {
    const times = Math.min(message.handedOut - 1, 6)
    message.nak(retryPause * 2 ** times)
  })
  const giveBack = Effect.sync(() => {
    // At once it could come here again, while a worker stops.
    message.nak(giveBackPause)
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
