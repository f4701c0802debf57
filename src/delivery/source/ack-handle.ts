import type { Effect } from "effect"
import type { Prefetched } from "../../broker/prefetch-window.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Delivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"

/** A message of a delivery stream that this worker has in flight, and the ways to release it. */
export interface AckHandle {
  readonly place: Place
  readonly delivery: Delivery
  readonly body: Uint8Array
  /**
   * How often the broker has delivered the message, this time included. A broker may lose the count
   * in a crash.
   */
  readonly deliveryCount: number
  /**
   * Acknowledges the message: its delivery has ended, and the stream removes it.
   *
   * @param erase removes its retry record, and runs once the message is gone.
   */
  readonly ack: (erase: Effect.Effect<void>) => Effect.Effect<void>
  /** Has the message redelivered after a delay, ms. */
  readonly nak: (delayMs: number) => void
  /** Its place in the prefetch window; undefined where it was found by a scan of the stream. */
  readonly hand?: Prefetched
}

/** Makes the handle of a message that the consumer delivered. */
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
