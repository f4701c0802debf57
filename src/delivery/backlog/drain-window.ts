/** Messages read beyond the lowest unfinished one, at most. */
const widest = 256

/**
 * What has been read of one endpoint's backlog and is not purged yet. Reading goes on in order of
 * sequence; finishing does not.
 */
export class DrainWindow {
  /** By sequence, in the order of reading: whether it is finished. */
  readonly #read = new Map<number, boolean>()
  /** Read, not begun, and to be read again. */
  readonly #forgotten = new Set<number>()
  #next: number
  #finished = 0

  constructor(from = 1) {
    this.#next = from
  }

  /** The sequence from which to read on: those that were given back come first. */
  get next(): number {
    return Math.min(this.#next, ...this.#forgotten)
  }

  /** How many more may be read. */
  get room(): number {
    return Math.max(0, widest - this.#read.size)
  }

  /** How many of what was read are finished. */
  get finishedCount(): number {
    return this.#finished
  }

  /** True where all that was read is finished. */
  get isFinished(): boolean {
    return this.#finished === this.#read.size && this.#forgotten.size === 0
  }

  /** True where it was read and is not purged. */
  has(seq: number): boolean {
    return this.#read.has(seq)
  }

  /** Notes a message that was read; false where it is known already. */
  add(seq: number): boolean {
    this.#next = Math.max(this.#next, seq + 1)
    this.#forgotten.delete(seq)
    if (this.#read.has(seq)) return false
    this.#read.set(seq, false)
    return true
  }

  /**
   * What was to be read again and is not among what was found from a sequence on, in order, is gone.
   * To be called before any of it is begun, and so may be given back.
   */
  found(from: number, seqs: ReadonlyArray<number>): void {
    const last = seqs.at(-1) ?? 0
    for (const seq of this.#forgotten)
      if (seq >= from && seq <= last && !seqs.includes(seq)) this.#forgotten.delete(seq)
  }

  /** It has ended, or waits elsewhere now. */
  finish(seq: number): void {
    if (this.#read.get(seq) !== false) return
    this.#read.set(seq, true)
    this.#finished++
  }

  /** It was not begun, and is to be read again. */
  forget(seq: number): void {
    if (this.#read.get(seq) !== false) return
    this.#read.delete(seq)
    // Not by going back: a batch that is being read meanwhile would go on from its own end.
    this.#forgotten.add(seq)
  }

  /** It was removed by itself. */
  gone(seq: number): void {
    this.#forgotten.delete(seq)
  }

  /** The sequence below which everything is finished. */
  get below(): number {
    let lowest = this.next
    for (const [seq, finished] of this.#read) if (!finished && seq < lowest) lowest = seq
    return lowest
  }

  /** All that are finished. */
  get finished(): ReadonlyArray<number> {
    return [...this.#read].flatMap(([seq, finished]) => (finished ? [seq] : []))
  }

  /** Those that a purge of all below a sequence removes. */
  finishedBelow(seq: number): ReadonlyArray<number> {
    return [...this.#read.keys()].filter((read) => read < seq)
  }

  /** They are gone. */
  purged(seqs: ReadonlyArray<number>): void {
    for (const seq of seqs) {
      if (this.#read.get(seq) === true) this.#finished--
      this.#read.delete(seq)
    }
  }
}
