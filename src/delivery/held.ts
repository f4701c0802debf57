import type { JsMsg } from "@nats-io/jetstream"
import type { Delivery } from "../domain/delivery.ts"
import type { Place } from "../domain/fact.ts"

/** A message of a delivery stream that this worker has in hand, and how it is let go. */
export interface Held {
  readonly place: Place
  readonly delivery: Delivery
  readonly body: Uint8Array
  /** How often the broker has handed it out, this time included; it may forget in a crash. */
  readonly handedOut: number
  /** It has ended: the stream drops it. */
  readonly ack: () => void
  /** It comes back after a time, ms. */
  readonly nak: (delayMs: number) => void
  /** The message as it was handed out; none where it was found by looking through the stream. */
  readonly message?: JsMsg
}

/**
 * Gives a message back for later. The delay is made whole: to a fraction the broker answers by
 * handing the message out at once.
 */
export const nakFor = (message: Pick<JsMsg, "nak">, delayMs: number): void =>
  message.nak(Math.max(1, Math.round(delayMs)))

/** A delivery as the consumer handed it out. */
export const holdMessage = (stream: string, message: JsMsg, delivery: Delivery): Held => ({
  place: { stream, seq: message.seq },
  delivery,
  body: message.data,
  handedOut: message.info.deliveryCount,
  ack: () => message.ack(),
  nak: (delayMs) => nakFor(message, delayMs),
  message
})

/** `<stream>:<sequence>`: a place as headers carry it. */
export const placeName = ({ seq, stream }: Place): string => `${stream}:${seq}`
