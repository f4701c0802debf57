import type { Effect } from "effect"
import type { PlacedDelivery } from "../../domain/delivery.ts"

/** A message of a delivery stream that this worker has in flight, and the ways to release it. */
export interface AckHandle extends PlacedDelivery {
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
  ack(erase: Effect.Effect<void>): Effect.Effect<void>
  /** Has the message redelivered after a delay, ms. */
  nak(delayMs: number): void
}
