/** One that was not handed out for so long after its time is gone: somebody has removed it, ms. */
const goneAfter = 60_000

/**
 * The messages of a queue that this version cannot read. They are given back, and the broker hands
 * them out again and again: which of them are still there is known by that alone.
 */
export class UnreadableQueue {
  /** By sequence: until when each is to be handed out again, by the monotonic clock, ms. */
  readonly #until = new Map<number, number>()

  /**
   * One was handed out, and is given back for so long (ms).
   *
   * @returns true where it was not known.
   */
  note(seq: number, pause: number): boolean {
    const isNew = !this.#until.has(seq)
    // It may be handed out late: twice the pause is enough for a partition that takes little.
    this.#until.set(seq, performance.now() + 2 * pause + goneAfter)
    return isNew
  }

  /** How many there are. */
  count(): number {
    const now = performance.now()
    for (const [seq, until] of this.#until) if (until < now) this.#until.delete(seq)
    return this.#until.size
  }
}
