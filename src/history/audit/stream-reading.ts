import { createHash, type Hash } from "node:crypto"
import type { Seen } from "../../broker/broker.ts"
import { millisOf } from "../../broker/stream-message.ts"
import { addMark, type Mark } from "./reach.ts"

/** Sequences per digest; each begins at a multiple of this. */
export const digestSpan = 65_536

const bufferBytes = 1 << 20
/** Sequence, time, and two lengths. */
const frame = 24

/** The fingerprint of a stretch of a stream. */
export interface Stretch {
  /** The first and the last sequence that had a message. */
  readonly first: number
  readonly last: number
  readonly messages: number
  /** Over sequence, time, subject and body of each message, in order; hexadecimal. */
  readonly sha256: string
}

/**
 * Fingerprints of a reading, one per {@link digestSpan} sequences. So two readings can be compared
 * although the oldest messages have expired and new ones were stored in between.
 */
class Digests {
  readonly stretches: Array<Stretch> = []
  readonly #buffer = Buffer.allocUnsafe(bufferBytes)
  #used = 0
  #hash: Hash = createHash("sha256")
  #first = 0
  #last = 0
  #messages = 0
  readonly #mark: number
  /** The fingerprint up to the mark, if the mark is inside a stretch. */
  marked: Stretch | undefined

  /** @param mark a sequence up to which an additional fingerprint is made. */
  constructor(mark = Number.POSITIVE_INFINITY) {
    this.#mark = mark
  }

  add({ message, nanoseconds, seq }: Seen): void {
    if (this.#messages > 0) {
      if (this.#last <= this.#mark && seq > this.#mark) this.marked = this.#snapshot()
      if (Math.floor(seq / digestSpan) !== Math.floor(this.#last / digestSpan)) this.#close()
    }
    if (this.#messages++ === 0) this.#first = seq
    this.#last = seq
    const { data, subject } = message
    const needed = frame + subject.length + data.length
    if (this.#used + needed > bufferBytes) this.#flush()
    if (needed > bufferBytes) {
      this.#hash.update(`${seq} ${nanoseconds} ${subject} ${data.length} `).update(data)
      return
    }
    const buffer = this.#buffer
    let at = this.#used
    at = buffer.writeDoubleBE(seq, at)
    at = buffer.writeDoubleBE(Number(nanoseconds), at)
    at = buffer.writeUInt32BE(subject.length, at)
    at = buffer.writeUInt32BE(data.length, at)
    at += buffer.write(subject, at, "latin1")
    buffer.set(data, at)
    this.#used = at + data.length
  }

  /** All stretches so far, including the incomplete last one. */
  all(): ReadonlyArray<Stretch> {
    return this.#messages === 0 ? this.stretches : [...this.stretches, this.#snapshot()]
  }

  #snapshot(): Stretch {
    this.#flush()
    const sha256 = this.#hash.copy().digest("hex")
    return { first: this.#first, last: this.#last, messages: this.#messages, sha256 }
  }

  #close(): void {
    this.stretches.push(this.#snapshot())
    this.#hash = createHash("sha256")
    this.#messages = 0
  }

  #flush(): void {
    this.#hash.update(this.#buffer.subarray(0, this.#used))
    this.#used = 0
  }
}

/** How far the reading of a stream has come, and the fingerprints of what was read. */
export class StreamReading {
  /** The next sequence to read. */
  next: number
  /** The last sequence to read now. */
  to: number
  messages = 0
  /** The first message that was read; `at` is when it was stored, ms since the epoch. */
  first: { readonly seq: number; readonly at: number } | undefined
  /** The last message that was read. */
  last: Pick<Seen, "nanoseconds" | "seq"> | undefined
  /** The first message of each hour. */
  readonly marks: Array<Mark> = []
  readonly digests: Digests

  /**
   * @param from the first sequence to read.
   * @param mark a sequence up to which an additional fingerprint is made.
   */
  constructor(from: number, mark?: number) {
    this.next = from
    this.to = from - 1
    this.digests = new Digests(mark)
  }

  /** Records that a message was read. */
  read(seen: Seen): void {
    const { nanoseconds, seq } = seen
    const at = millisOf(nanoseconds)
    this.next = seq + 1
    this.first ??= { seq, at }
    addMark(this.marks, seq, at)
    this.last = { seq, nanoseconds }
    this.messages++
    this.digests.add(seen)
  }

  /** Records that nothing more is stored up to a sequence. */
  readUpTo(seq: number): void {
    this.next = Math.max(this.next, seq + 1)
  }
}
