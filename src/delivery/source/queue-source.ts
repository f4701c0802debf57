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

/** Maximum messages of its queue that one partition holds, in flight and in lanes. */
const maxPrefetched = 128
/** Redelivery delay of a delivery whose direct delivery is in flight, ms. */
const inFlightPauseMs = 1_000
/** Redelivery delay of a delivery that has ended while the stream may be truncated, ms. */
const doubtPauseMs = 250
/** Pause before the source asks again whether attempts may begin, ms. */
const notOwnerPauseMs = 250

export interface QueueSourceOptions {
  readonly memory: PartitionMemory
  readonly settlement: Settlement
  /** Maximum bytes of bodies that it holds. */
  readonly bytes: number
  /** ack_wait of the consumer, ms. */
  readonly ackWait: number
  /** True while it is unknown whether the broker has truncated the stream. */
  readonly isDoubtful: () => boolean
  /** The source pulls nothing while this returns false. */
  readonly mayAttempt: () => boolean
  readonly stopping: () => boolean
  /** Receives each delivery. The caller must call `letGo` for it later. */
  readonly enter: (held: AckHandle) => void
  /** Called when a message is redelivered whose delivery has ended. */
  readonly hasEnded: (place: Place) => void
  readonly run: (told: Effect.Effect<void>) => void
}

/**
 * Makes the source that pulls one partition's queue, and holds its messages until they are
 * released.
 */
export const makeQueueSource = Effect.fnUntraced(function* (options: QueueSourceOptions) {
  const { memory, mayAttempt, settlement, stopping } = options
  const { stream } = memory
  const { names } = yield* Broker
  const prefetch = new PrefetchWindow({ deliveries: maxPrefetched, bytes: options.bytes })
  yield* prefetch.keepAlive(options.ackWait)
  /** Storage time of each message in flight, by sequence: a truncated stream reuses sequences. */
  const working = new Map<number, number>()
  const unreadable = new UnreadableQueue()
  let asked = false

  /**
   * Keeps an unreadable message in the queue: the newer version that wrote it can deliver it.
   * Returns the redelivery delay.
   */
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
    // The event was redelivered and routed again while its direct delivery was in flight. A message
    // with a retry record was decided about: that decision counts.
    if (
      !memory.recorded.has(seq) &&
      !memory.waiting.has(seq) &&
      isCompletedElsewhere(memory, delivery)
    )
      return options.isDoubtful() ? message.nak(doubtPauseMs) : message.ack()
    const { progress: routingProgress, round } = delivery
    const isFirst = round === firstRound
    if (isFirst && memory.directDeliveries.isInFlight(delivery)) return message.nak(inFlightPauseMs)
    const isUntried = isFirst && routingProgress.attempts === 0
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
    /** Pulls messages until the worker stops. */
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
    /** Returns the number of messages in flight. */
    size: () => working.size,
    /**
     * Returns the number of messages that this version cannot read, as far as they were delivered.
     */
    unreadable: () => unreadable.count(),
    /**
     * Marks a waiting message as in flight that was not delivered by the consumer. Returns false
     * where it is in flight already.
     */
    takeWaiting: ({ at, seq }: Place): boolean => {
      if (working.has(seq)) return false
      working.set(seq, at)
      return true
    },
    /** Takes the message out of the prefetch window. It stays in flight. */
    exclude: ({ hand }: AckHandle) => {
      if (hand !== undefined) prefetch.exclude(hand)
    },
    letGo: ({ hand, place }: AckHandle) => {
      if (working.get(place.seq) === place.at) working.delete(place.seq)
      if (hand !== undefined) prefetch.release(hand)
    },
    /** Returns whether a pull request has completed since the last call. */
    hasAsked: () => {
      const before = asked
      asked = false
      return before
    }
  }
})
