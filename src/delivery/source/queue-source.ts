import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { PrefetchWindow } from "../../broker/prefetch-window.ts"
import { pull } from "../../broker/pull.ts"
import type { Take } from "../../broker/puller.ts"
import { firstRound, parseDelivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import type { Settlement } from "../execution/settlement.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import { isCompletedElsewhere } from "../recovery/partition-memory.ts"
import type { AckHandle } from "./ack-handle.ts"
import { makeAckHandle } from "./ack-handle.ts"
import { UnreadableQueue } from "./unreadable-queue.ts"

/** Messages of its queue that one partition holds at most, in flight and in its lanes' lines. */
const maxPrefetched = 128
/** Pause before a delivery is looked at again that is being taken from its event, ms. */
const inFlightPauseMs = 1_000
/** Pause before a delivery is looked at again of which nobody knows whether its end was lost, ms. */
const doubtPauseMs = 250
/** Pause before it is asked again whether an attempt may begin, ms. */
const notOwnerPauseMs = 250

export interface QueueSourceOptions {
  readonly memory: PartitionMemory
  readonly settlement: Settlement
  /** Bodies that it holds at most, bytes. */
  readonly bytes: number
  /** ms */
  readonly ackWait: number
  /** True while it is not known whether the broker has lost what it had stored last. */
  readonly isDoubtful: () => boolean
  /** Nothing is asked for while this is false. */
  readonly mayAttempt: () => boolean
  readonly stopping: () => boolean
  /** Gets each delivery, which `letGo` must follow. */
  readonly enter: (held: AckHandle) => void
  /** Told of a message that came again though it has ended. */
  readonly hasEnded: (place: Place) => void
  readonly run: (told: Effect.Effect<void>) => void
}

/** What one partition takes from its queue and has in hand until it is let go. */
export const makeQueueSource = Effect.fnUntraced(function* (options: QueueSourceOptions) {
  const { memory, mayAttempt, settlement, stopping } = options
  const { stream } = memory
  const { names } = yield* Broker
  const prefetch = new PrefetchWindow({ deliveries: maxPrefetched, bytes: options.bytes })
  yield* prefetch.keepAlive(options.ackWait)
  /** When each of those in hand was stored, by its sequence, which a broker that lost its end gives again. */
  const working = new Map<number, number>()
  const unreadable = new UnreadableQueue()
  let asked = false

  /** Leaves a message where it is: the newer version that wrote it can deliver it. */
  const keep = (seq: number, subject: string): number => {
    const pause = memory.poisonGuard.afterDefect(seq)
    if (unreadable.note(seq, pause)) {
      const [tenant, endpoint] = subject.split(".").slice(-2)
      const where = { stream, seq, tenant, endpoint }
      options.run(
        Effect.logError("a message in a queue is unreadable to this version: kept", where)
      )
    }
    return pause
  }

  const take: Take = (message, header) => {
    const { seq } = message
    if (working.get(seq) === message.storedAt) return
    const delivery = parseDelivery(message.subject, header)
    if (delivery === undefined) return message.nak(keep(seq, message.subject))
    if (memory.settled.has(seq, delivery)) {
      if (options.isDoubtful()) return message.nak(doubtPauseMs)
      options.hasEnded({ stream, seq, at: message.storedAt })
      return message.ack()
    }
    // Its event was handed out again while it was taken from there. What has a record was decided about.
    if (
      !memory.recorded.has(seq) &&
      !memory.waiting.has(seq) &&
      isCompletedElsewhere(memory, delivery)
    )
      return options.isDoubtful() ? message.nak(doubtPauseMs) : message.ack()
    const { progress: sofar, round } = delivery
    const isFirst = round === firstRound
    if (isFirst && memory.directDeliveries.isInFlight(delivery)) return message.nak(inFlightPauseMs)
    const isUntried = isFirst && sofar.attempts === 0
    const progress = isUntried ? memory.directDeliveries.progressOf(delivery) : undefined
    working.set(seq, message.storedAt)
    const known = progress === undefined ? delivery : { ...delivery, progress }
    options.enter(makeAckHandle(stream, message, known, prefetch.take(message)))
  }

  const room = Effect.gen(function* () {
    if (!settlement.isOpen()) {
      yield* Effect.race(settlement.ready, Effect.sleep("1 second"))
      return
    }
    yield* prefetch.hasCapacity
    if (mayAttempt()) return prefetch.capacity
    yield* Effect.sleep(notOwnerPauseMs)
    return
  })

  return {
    /** Takes messages until it is to stop. */
    pull: pull({
      name: stream,
      stream,
      consumer: names.deliverConsumer,
      stopping,
      take,
      tooLarge: (wanted) => prefetch.tooLarge(wanted),
      asked: () => {
        asked = true
      },
      room
    }),
    /** Messages in hand. */
    size: () => working.size,
    /** Messages that are unreadable to this version, as far as they have been handed out. */
    unreadable: () => unreadable.count(),
    /** Takes a waiting message in hand that was not handed out; false where it is in hand already. */
    takeWaiting: ({ at, seq }: Place): boolean => {
      if (working.has(seq)) return false
      working.set(seq, at)
      return true
    },
    /** It stays in hand, and takes up no room any more. */
    exclude: ({ hand }: AckHandle) => {
      if (hand !== undefined) prefetch.exclude(hand)
    },
    letGo: ({ hand, place }: AckHandle) => {
      if (working.get(place.seq) === place.at) working.delete(place.seq)
      if (hand !== undefined) prefetch.release(hand)
    },
    /** Whether a request for messages has come to its end since this was asked last. */
    hasAsked: () => {
      const before = asked
      asked = false
      return before
    }
  }
})
