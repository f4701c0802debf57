import { timers } from "../../time/timers.ts"

/** A message that was not redelivered for this long after it was due has been removed, ms. */
const goneAfter = 60_000

/**
 * Counts the messages of a queue that this version cannot read. Each is NAKed and redelivered again
 * and again; a message counts as long as it is redelivered.
 */
export class UnreadableQueue {
  /**
   * When each message is forgotten unless it is redelivered, by sequence, ms of the monotonic
   * clock.
   */
  readonly #until = new Map<number, number>()

  /**
   * Notes that a message was delivered, and NAKed with this delay (ms).
   *
   * @returns true where the message is new.
   */
  note(seq: number, pause: number): boolean {
    const isNew = !this.#until.has(seq)
    // Redelivery may be late: a partition that takes little pulls rarely.
    this.#until.set(seq, timers.monotonicMs() + 2 * pause + goneAfter)
    return isNew
  }

  /** Returns the number of unreadable messages. */
  count(): number {
    const now = timers.monotonicMs()
    for (const [seq, until] of this.#until) if (until < now) this.#until.delete(seq)
    return this.#until.size
  }
}
