import type { Effect } from "effect"
import type { Prefetched } from "../../broker/prefetch-window.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Delivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"

/** A message of a delivery stream that this worker has in hand, and how it is let go. */
export interface AckHandle {
  readonly place: Place
  readonly delivery: Delivery
  readonly body: Uint8Array
  /** How often the broker has handed it out, this time included; it may forget in a crash. */
  readonly deliveryCount: number
  /**
   * It has ended: the stream drops it.
   *
   * @param erase removes what was written about it, once it is gone.
   */
  readonly ack: (erase: Effect.Effect<void>) => Effect.Effect<void>
  /** It comes back after a time, ms. */
  readonly nak: (delayMs: number) => void
  /** In which it is; none where it was found by looking through the stream. */
  readonly hand?: Prefetched
}

/** A delivery as the consumer handed it out. */
export const makeAckHandle = (
  stream: string,
  message: StreamMessage,
  delivery: Delivery,
  hand: Prefetched
): AckHandle => ({
  place: { stream, seq: message.seq, at: message.storedAt },
  delivery,
  body: message.data,
  deliveryCount: message.deliveryCount,
  ack: (erase) => {
    message.ack()
    return erase
  },
  nak: (delayMs) => message.nak(delayMs),
  hand
})
