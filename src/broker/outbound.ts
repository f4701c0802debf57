import type { NatsConnection } from "@nats-io/transport-node"
import { NatsConnectionImpl } from "@nats-io/transport-node"

/** A message on its way out: what stands before its body, and the body. */
interface Frame {
  readonly head: string
  readonly body: Uint8Array | string
  /** Of the body. */
  readonly bytes: number
  /** When it is of no use any more, ms of the monotonic clock. */
  readonly until: number
  /** The only connection that it is meant for; any where this is not given. */
  readonly life: Life | undefined
}

/** Stands for one connection from when it is made until it breaks. */
export type Life = object

/** Whether a stream still has a message at a sequence that was stored at a time, ms since the epoch. */
export type IsStored = (stream: string, seq: number, at: number) => Promise<boolean>

/** Bytes that it takes as it is sent. */
const sizeOf = ({ bytes, head }: Frame): number => Buffer.byteLength(head) + bytes + lineEnd.length

const lineEnd = "\r\n"
const separators = /\s/
const framesBeforeExpiry = 1_024

/**
 * Composes what is published in a turn of the event loop, and writes it in one piece when the turn
 * ends. The client encodes, checks and copies each part of each message by itself, which takes
 * longer than all else about a publication (docs/performance.md). Answers of receivers come in
 * turns of their own, so that together they cost one write.
 *
 * Without a connection all of it waits here for the next one, which gets what is still of use: the
 * client would send a message that was given up long ago, whose id the broker has forgotten.
 */
export class Outbound {
  readonly #connection: NatsConnectionImpl
  #frames: Array<Frame> = []
  #bytes = 0
  #isAway = false
  /** Whether a message that was handed out through an earlier connection is still what it was. */
  isStored: IsStored = () => Promise.resolve(true)
  /** Frames at which it is looked, without a connection, which are of no use any more. */
  #many = framesBeforeExpiry

  constructor(connection: NatsConnection) {
    if (!(connection instanceof NatsConnectionImpl))
      throw new Error("this is no connection of the client that Petrel was made with")
    this.#connection = connection
  }

  /** True where nothing can be published any more. */
  get isClosed(): boolean {
    return this.#connection.isClosed() || this.#connection.isDraining()
  }

  /** The present connection. The broker tells of itself when one is made, before anything else. */
  get life(): Life | undefined {
    return this.#connection.info
  }

  /** True where what is published goes out. */
  get isConnected(): boolean {
    return this.#connection.protocol.connected
  }

  /** Bytes that a message may have, headers included. */
  get largest(): number {
    return this.#connection.info?.max_payload ?? Number.POSITIVE_INFINITY
  }

  /**
   * Puts a message in line. Throws where its subject is none, or where it is larger than the
   * broker takes.
   *
   * @param headers as they are sent, `NATS/1.0` and the empty line included; none where it is empty.
   * @param until when it is of no use any more, ms of the monotonic clock.
   * @param life the only connection that it is meant for. (Default: any)
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
      throw new Error(`it is larger than the broker's max_payload, ${this.largest} bytes`)
    const head =
      headers === ""
        ? `PUB ${to} ${bytes}${lineEnd}`
        : `HPUB ${to} ${headerBytes} ${headerBytes + bytes}${lineEnd}${headers}`
    const frame = { head, body, bytes, until, life }
    this.#bytes += sizeOf(frame)
    if (this.#isAway && this.#frames.length >= this.#many) this.#letGo()
    if (this.#frames.push(frame) === 1) setImmediate(() => this.flush())
  }

  /** Writes what stands in line now; to be called when there is a connection again. */
  flush(): void {
    if (this.#frames.length === 0) return
    if (!this.#connection.protocol.connected) {
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
    this.#connection.protocol.sendCommand(piece)
  }

  /** Lets go of what is of no use any more. */
  #letGo(): void {
    const now = performance.now()
    this.#frames = this.#frames.filter((frame) => {
      const isMeant = frame.life === undefined || frame.life === this.life
      if (isMeant && frame.until > now) return true
      this.#bytes -= sizeOf(frame)
      return false
    })
    this.#many = Math.max(framesBeforeExpiry, 2 * this.#frames.length)
  }
}
