import type { Msg } from "@nats-io/transport-node"
import type { Life, Outbound } from "./outbound.ts"

/** Whole ms of a number of nanoseconds, given as text: as a number it would be rounded. */
export const millisOf = (nanoseconds: string): number => Number(nanoseconds.slice(0, -6))

/**
 * A message of a stream as a consumer handed it out, and how it is answered.
 *
 * What is known of it stands in its reply subject (11 tokens or more):
 * `$JS.ACK.<domain>.<account>.<stream>.<consumer>.<times>.<sequence>.<n>.<nanoseconds>.<pending>…`
 * An older server leaves out domain and account (9 tokens).
 */
export class StreamMessage {
  readonly subject: string
  /** Sequence in its stream. */
  readonly seq: number
  /** How often it has been handed out, this time included; the broker may forget in a crash. */
  readonly deliveryCount: number
  /** When the broker stored it, ms since the epoch. */
  readonly storedAt: number
  readonly data: Uint8Array
  readonly #outbound: Outbound
  readonly #reply: string
  /** The connection through which it came. */
  readonly #life: Life | undefined
  #answered = false

  /** The headers are not kept: they weigh more than all the rest, and are read once. */
  constructor(message: Msg, outbound: Outbound) {
    this.#outbound = outbound
    this.#life = outbound.life
    this.#reply = message.reply ?? ""
    this.subject = message.subject
    this.data = message.data
    const tokens = this.#reply.split(".")
    const at = tokens.length === 9 ? 4 : 6
    this.deliveryCount = Number(tokens[at])
    this.seq = Number(tokens[at + 1])
    this.storedAt = millisOf(tokens[at + 3] ?? "")
  }

  /** It is done with: a work queue drops it. */
  ack(): void {
    this.#answer("+ACK")
  }

  /**
   * Gives it back for later, ms. The delay is made whole: to a fraction the broker answers by
   * handing the message out at once.
   */
  nak(delayMs: number): void {
    const delay = Math.max(1, Math.round(delayMs)) * 1_000_000
    this.#answer(`-NAK {"delay":${delay}}`)
  }

  /** Work on it goes on: the broker's ack_wait begins anew. */
  working(): void {
    // Without its connection nobody knows whose the sequence will be.
    if (!this.#answered && this.#outbound.life === this.#life) this.#send("+WPI")
  }

  /**
   * Only the first answer counts. The broker knows the message by its sequence alone, and one that
   * has lost the end of the stream may have given that to another message since.
   */
  #answer(payload: string): void {
    if (this.#answered) return
    this.#answered = true
    if (this.#outbound.life === this.#life) this.#send(payload)
    else
      this.#outbound.isStored(this.#stream, this.seq, this.storedAt).then(
        (isStored) => isStored && this.#send(payload),
        // Unanswered it is handed out again.
        () => undefined
      )
  }

  get #stream(): string {
    const tokens = this.#reply.split(".")
    return tokens[tokens.length === 9 ? 2 : 4] ?? ""
  }

  /** Without a connection the broker hands it out again in any case. */
  #send(payload: string): void {
    const { isClosed, life } = this.#outbound
    if (!isClosed) this.#outbound.publish(this.#reply, "", "", payload, undefined, life)
  }
}
