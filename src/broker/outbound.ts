import { timers } from "../time/timers.ts"
import type { Life, Wire } from "./wire.ts"

/** A message to be sent: the protocol line with the headers, and the body. */
interface Frame {
  readonly head: string
  readonly body: Uint8Array | string
  /** Size of the body. */
  readonly bytes: number
  /** When the message expires, ms of the monotonic clock. */
  readonly until: number
  /** The only connection that the message may be sent on; undefined for any. */
  readonly life: Life | undefined
}

/**
 * Tells whether a stream still has the message that it stored at a sequence at a time, ms since the
 * epoch.
 */
type IsStored = (stream: string, seq: number, at: number) => Promise<boolean>

/** Bytes of the frame on the wire. */
const sizeOf = ({ bytes, head }: Frame): number => Buffer.byteLength(head) + bytes + lineEnd.length

/** A message is larger than the broker's max_payload. */
export class MessageTooLarge extends Error {}

const lineEnd = "\r\n"
const separators = /\s/
const framesBeforeExpiry = 1_024

/**
 * Collects what is published in one turn of the event loop, and writes it in one piece when the
 * turn ends. The client encodes, checks and copies each part of each message separately, which
 * takes longer than everything else about a publication (bench/DIARY.md). Answers of receivers
 * arrive in turns of their own, so that publications of one turn share one write.
 *
 * While there is no connection, messages wait here. The next connection gets those that have not
 * expired. The client would also send messages that were given up long ago, whose ids the broker
 * has forgotten.
 */
export class Outbound {
  readonly #wire: Wire
  #frames: Array<Frame> = []
  #bytes = 0
  #isAway = false
  /**
   * Tells whether a message that was delivered over an earlier connection is still the same
   * message.
   */
  isStored: IsStored = () => Promise.resolve(true)
  /** Number of waiting frames at which expired ones are dropped while there is no connection. */
  #many = framesBeforeExpiry

  constructor(wire: Wire) {
    this.#wire = wire
  }

  /** True if nothing can be published any more. */
  get isClosed(): boolean {
    return this.#wire.isClosed
  }

  /** Identity of the current connection. */
  get life(): Life | undefined {
    return this.#wire.life
  }

  /** True while there is a connection to write to. */
  get isConnected(): boolean {
    return this.#wire.isConnected
  }

  /** Maximum size of a message, headers included. */
  get largest(): number {
    return this.#wire.largest
  }

  /**
   * Queues a message. Throws if the subject is invalid, and MessageTooLarge if the message is larger
   * than the broker's max_payload.
   *
   * @param headers as sent, `NATS/1.0` and the empty line included; empty for none.
   * @param until when the message expires, ms of the monotonic clock.
   * @param life the only connection that the message may be sent on. (Default: any)
   */
  publish(
    subject: string,
    reply: string,
    headers: string,
    body: Uint8Array | string,
    until = Number.POSITIVE_INFINITY,
    life?: Life
  ): void {
    if (subject === "" || separators.test(subject)) throw new Error(`no subject: ${subject}`)
    const bytes = Buffer.byteLength(body)
    const to = reply === "" ? subject : `${subject} ${reply}`
    const headerBytes = Buffer.byteLength(headers)
    if (bytes + headerBytes > this.largest)
      throw new MessageTooLarge(`it is larger than the broker's max_payload, ${this.largest} bytes`)
    const head =
      headers === ""
        ? `PUB ${to} ${bytes}${lineEnd}`
        : `HPUB ${to} ${headerBytes} ${headerBytes + bytes}${lineEnd}${headers}`
    const frame = { head, body, bytes, until, life }
    this.#bytes += sizeOf(frame)
    if (this.#isAway && this.#frames.length >= this.#many) this.#letGo()
    if (this.#frames.push(frame) === 1) timers.immediate(() => this.flush())
  }

  /** Writes all queued messages now. Called when there is a connection again. */
  flush(): void {
    if (this.#frames.length === 0) return
    if (!this.#wire.isConnected) {
      this.#isAway = true
      return
    }
    if (this.#isAway) this.#letGo()
    this.#isAway = false
    const frames = this.#frames
    const piece = Buffer.allocUnsafeSlow(this.#bytes)
    this.#frames = []
    this.#bytes = 0
    let at = 0
    for (const { body, bytes, head } of frames) {
      at += piece.write(head, at)
      if (typeof body === "string") piece.write(body, at)
      else piece.set(body, at)
      at += bytes
      at += piece.write(lineEnd, at, "latin1")
    }
    this.#wire.write(piece)
  }

  /** Drops expired messages and those for an earlier connection. */
  #letGo(): void {
    const now = timers.monotonicMs()
    this.#frames = this.#frames.filter((frame) => {
      const isMeant = frame.life === undefined || frame.life === this.life
      if (isMeant && frame.until > now) return true
      this.#bytes -= sizeOf(frame)
      return false
    })
    this.#many = Math.max(framesBeforeExpiry, 2 * this.#frames.length)
  }
}
