/** Messages read beyond the lowest unfinished one, at most. */
const widest = 256

/** The messages of a backlog that this version cannot read. */
export interface Unreadable {
  readonly count: number
  /** Infinity where there is none. */
  readonly lowest: number
  /** 0 where there is none. */
  readonly highest: number
}

const noneUnreadable: Unreadable = { count: 0, lowest: Number.POSITIVE_INFINITY, highest: 0 }

/** Where a backlog that was empty but for unreadable messages is read on. */
export interface Beginning {
  readonly from: number
  readonly unreadable: Unreadable
}

/**
 * What has been read of one endpoint's backlog and is not purged yet. Reading goes on in order of
 * sequence; finishing does not.
 *
 * A message that this version cannot read is kept: it is never purged, and does not keep the backlog
 * from being finished. Of all those only the number and the two ends are held, however many there are.
 */
export class DrainWindow {
  /** By sequence, in the order of reading: whether it is finished. */
  readonly #read = new Map<number, boolean>()
  /** Read, not begun, and to be read again. */
  readonly #forgotten = new Set<number>()
  #next: number
  #finished = 0
  #unreadable: Unreadable

  constructor({ from, unreadable }: Beginning = { from: 1, unreadable: noneUnreadable }) {
    this.#next = from
    this.#unreadable = unreadable
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

  /** The messages that were found to be unreadable. */
  get unreadable(): Unreadable {
    return this.#unreadable
  }

  /** True where all that was read is finished, or unreadable. */
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

  /**
   * This version cannot read it: it is kept. Whoever finds such messages goes through the backlog in
   * order of sequence, and comes to one again only where somebody has been there before.
   *
   * @returns true where it was not known.
   */
  keep(seq: number): boolean {
    this.#read.delete(seq)
    const { count, highest, lowest } = this.#unreadable
    if (seq <= highest) return false
    this.#unreadable = { count: count + 1, lowest: Math.min(lowest, seq), highest: seq }
    return true
  }

  /** It was removed by itself. */
  gone(seq: number): void {
    this.#forgotten.delete(seq)
  }

  /** The sequence below which nothing is read again: all of it is finished, or unreadable. */
  get passed(): number {
    let lowest = this.next
    for (const [seq, finished] of this.#read) if (!finished && seq < lowest) lowest = seq
    return lowest
  }

  /** The sequence below which everything is finished. */
  get below(): number {
    return Math.min(this.passed, this.#unreadable.lowest)
  }

  /** All that are finished. */
  get finished(): ReadonlyArray<number> {
    return [...this.#read].flatMap(([seq, finished]) => (finished ? [seq] : []))
  }

  /** Those that no purge removes, because an unreadable one comes before them. */
  get finishedBehindUnreadable(): ReadonlyArray<number> {
    const { count, lowest } = this.#unreadable
    return count === 0 ? [] : this.finished.filter((seq) => seq > lowest)
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
