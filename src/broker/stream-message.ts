import type { Msg } from "@nats-io/transport-node"
import type { Outbound } from "./outbound.ts"
import type { Life } from "./wire.ts"

/** Converts nanoseconds to whole ms. They are given as text: as a number they would be rounded. */
export const millisOf = (nanoseconds: string): number => Number(nanoseconds.slice(0, -6))

/**
 * A message as a consumer delivered it, with its acknowledgement.
 *
 * The metadata is in its reply subject (11 tokens or more):
 * `$JS.ACK.<domain>.<account>.<stream>.<consumer>.<times>.<sequence>.<n>.<nanoseconds>.<pending>…`
 * An older server omits domain and account (9 tokens).
 */
export class StreamMessage {
  readonly subject: string
  /** Sequence in its stream. */
  readonly seq: number
  /**
   * How often the message has been delivered, including this time. The broker may lose the count in
   * a crash.
   */
  readonly deliveryCount: number
  /** Number of messages that the consumer has delivered, this one included. */
  readonly consumerSeq: number
  /** When the broker stored it, ms since the epoch. */
  readonly storedAt: number
  readonly data: Uint8Array
  readonly #outbound: Outbound
  readonly #reply: string
  /** The connection that the message arrived on. */
  readonly #life: Life | undefined
  #answered = false

  /** Headers are not kept: they take more memory than the rest, and are read once. */
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
    this.consumerSeq = Number(tokens[at + 2])
    this.storedAt = millisOf(tokens[at + 3] ?? "")
  }

  /** Acknowledges the message: a work queue removes it. */
  ack(): void {
    this.#answer("+ACK")
  }

  /**
   * Returns the message to be redelivered after a delay, ms. The delay is rounded to whole ms: the
   * broker answers a fraction by redelivering at once.
   */
  nak(delayMs: number): void {
    const delay = Math.max(1, Math.round(delayMs)) * 1_000_000
    this.#answer(`-NAK {"delay":${delay}}`)
  }

  /** Reports work in progress: the broker's ack_wait begins anew. */
  working(): void {
    // After a reconnect the sequence may belong to another message.
    if (!this.#answered && this.#outbound.life === this.#life) this.#send("+WPI")
  }

  /**
   * Sends the first answer and ignores later ones. The broker identifies the message by its
   * sequence alone; a truncated stream may have reused the sequence for another message.
   */
  #answer(payload: string): void {
    if (this.#answered) return
    this.#answered = true
    if (this.#outbound.life === this.#life) this.#send(payload)
    else
      this.#outbound.isStored(this.#stream, this.seq, this.storedAt).then(
        (isStored) => isStored && this.#send(payload),
        // An unacknowledged message is redelivered.
        () => undefined
      )
  }

  get #stream(): string {
    const tokens = this.#reply.split(".")
    return tokens[tokens.length === 9 ? 2 : 4] ?? ""
  }

  /** Without a connection nothing is sent: the broker redelivers the message in any case. */
  #send(payload: string): void {
    const { isClosed, life } = this.#outbound
    if (!isClosed) this.#outbound.publish(this.#reply, "", "", payload, undefined, life)
  }
}
