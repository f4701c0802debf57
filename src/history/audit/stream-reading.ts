import type { Seen } from "../../broker/bulk-read.ts"
import { millisOf } from "../../broker/stream-message.ts"
import type { Mark } from "./beginning.ts"
import { addMark } from "./beginning.ts"
import { Digests } from "./digest.ts"

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
