import type { Effect } from "effect"
import type { Prefetched } from "../../broker/prefetch-window.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Delivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import type { AckHandle } from "../execution/ack-handle.ts"

/** A message that the queue's consumer delivered. */
export class QueueMessage implements AckHandle {
  readonly place: Place
  readonly delivery: Delivery
  readonly prefetched: Prefetched
  readonly #message: StreamMessage

  constructor(stream: string, message: StreamMessage, delivery: Delivery, prefetched: Prefetched) {
    this.place = { stream, seq: message.seq, at: message.storedAt }
    this.delivery = delivery
    this.prefetched = prefetched
    this.#message = message
  }

  get body(): Uint8Array {
    return this.#message.data
  }

  get deliveryCount(): number {
    return this.#message.deliveryCount
  }

  ack(erase: Effect.Effect<void>): Effect.Effect<void> {
    this.#message.ack()
    return erase
  }

  nak(delayMs: number): void {
    this.#message.nak(delayMs)
  }
}
