/** Maximum messages read and not yet purged. */
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

/** Where reading continues in a backlog that was empty except for unreadable messages. */
export interface Beginning {
  readonly from: number
  readonly unreadable: Unreadable
}

/**
 * The messages of one endpoint's backlog that were read and are not purged yet. Messages are read
 * in order of sequence, but finish in any order.
 *
 * A message that this version cannot read is kept: it is never purged, and does not keep the
 * backlog from being finished. Only the number, the lowest and the highest sequence of unreadable
 * messages are held, however many there are.
 */
export class DrainWindow {
  /** Whether each message is finished, by sequence, in the order of reading. */
  readonly #read = new Map<number, boolean>()
  /** Messages that were read, not begun, and must be read again. */
  readonly #forgotten = new Set<number>()
  #next: number
  #finished = 0
  #unreadable: Unreadable

  constructor({ from, unreadable }: Beginning = { from: 1, unreadable: noneUnreadable }) {
    this.#next = from
    this.#unreadable = unreadable
  }

  /** The sequence from which reading continues: messages that were given back come first. */
  get next(): number {
    return Math.min(this.#next, ...this.#forgotten)
  }

  /** How many more messages may be read. */
  get room(): number {
    return Math.max(0, widest - this.#read.size)
  }

  /** Number of finished messages that are not purged. */
  get finishedCount(): number {
    return this.#finished
  }

  /** The unreadable messages found so far. */
  get unreadable(): Unreadable {
    return this.#unreadable
  }

  /** True where all messages that were read are finished or unreadable. */
  get isFinished(): boolean {
    return this.#finished === this.#read.size && this.#forgotten.size === 0
  }

  /** True where the message was read and is not purged. */
  has(seq: number): boolean {
    return this.#read.has(seq)
  }

  /** Adds a message that was read. Returns false where it is known already. */
  add(seq: number): boolean {
    this.#next = Math.max(this.#next, seq + 1)
    this.#forgotten.delete(seq)
    if (this.#read.has(seq)) return false
    this.#read.set(seq, false)
    return true
  }

  /**
   * Called with the sequences of a batch, read from `from` on. A message that was to be read again
   * and is not in the batch no longer exists. Must be called before any message of the batch is
   * begun, because a begun message may be given back.
   */
  found(from: number, seqs: ReadonlyArray<number>): void {
    const last = seqs.at(-1) ?? 0
    for (const seq of this.#forgotten)
      if (seq >= from && seq <= last && !seqs.includes(seq)) this.#forgotten.delete(seq)
  }

  /** Marks a message as finished: it has ended, or waits elsewhere. */
  finish(seq: number): void {
    if (this.#read.get(seq) !== false) return
    this.#read.set(seq, true)
    this.#finished++
  }

  /** Gives back a message that was not begun: it is read again. */
  forget(seq: number): void {
    if (this.#read.get(seq) !== false) return
    this.#read.delete(seq)
    // `#next` does not move back: a batch that is being read would advance it past this message
    // again.
    this.#forgotten.add(seq)
  }

  /**
   * Keeps a message that this version cannot read. Callers find unreadable messages in order of
   * sequence, so one at or below the highest was found before.
   *
   * @returns true where the message is new.
   */
  keep(seq: number): boolean {
    this.#read.delete(seq)
    const { count, highest, lowest } = this.#unreadable
    if (seq <= highest) return false
    this.#unreadable = { count: count + 1, lowest: Math.min(lowest, seq), highest: seq }
    return true
  }

  /** Notes that a message was removed individually. */
  gone(seq: number): void {
    this.#forgotten.delete(seq)
  }

  /** The sequence below which no message is read again: all are finished or unreadable. */
  get passed(): number {
    let lowest = this.next
    for (const [seq, finished] of this.#read) if (!finished && seq < lowest) lowest = seq
    return lowest
  }

  /** The sequence below which all messages are finished. */
  get below(): number {
    return Math.min(this.passed, this.#unreadable.lowest)
  }

  /** The sequences of all finished messages. */
  get finished(): ReadonlyArray<number> {
    return [...this.#read].flatMap(([seq, finished]) => (finished ? [seq] : []))
  }

  /** Finished messages after the first unreadable one: no purge can remove them. */
  get finishedBehindUnreadable(): ReadonlyArray<number> {
    const { count, lowest } = this.#unreadable
    return count === 0 ? [] : this.finished.filter((seq) => seq > lowest)
  }

  /** The messages that a purge of all below a sequence removes. */
  finishedBelow(seq: number): ReadonlyArray<number> {
    return [...this.#read.keys()].filter((read) => read < seq)
  }

  /** Notes that messages were purged or removed. */
  purged(seqs: ReadonlyArray<number>): void {
    for (const seq of seqs) {
      if (this.#read.get(seq) === true) this.#finished--
      this.#read.delete(seq)
    }
  }
}
