/** Maximum deliveries that were read and have not ended. */
const widest = 256
/** Maximum deliveries that were read and whose messages are still there. */
const mostHeld = 16 * widest

/** The messages of a backlog that this version cannot read. */
interface Unreadable {
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
 * The deliveries of one endpoint's backlog that were read and whose messages are not purged yet.
 * They are read in order, but finish in any order. Each has the slot of its place (`slotOf`): a
 * message of one delivery its sequence, an entry of a message a part of it.
 *
 * A message that this version cannot read is kept: it is never purged, and does not keep the
 * backlog from being finished. Only the number, the lowest and the highest sequence of unreadable
 * messages are held, however many there are.
 */
export class DrainWindow {
  /** Whether each delivery is finished, by slot, in the order of reading. */
  readonly #read = new Map<number, boolean>()
  /** Slots that were read, not begun, and must be read again. */
  readonly #forgotten = new Set<number>()
  #next: number
  #finished = 0
  #unreadable: Unreadable

  constructor({ from, unreadable }: Beginning = { from: 1, unreadable: noneUnreadable }) {
    this.#next = from
    this.#unreadable = unreadable
  }

  /** The slot from which reading continues: deliveries that were given back come first. */
  get next(): number {
    return Math.min(this.#next, ...this.#forgotten)
  }

  /** How many more deliveries may be read. */
  get capacity(): number {
    const { size } = this.#read
    return Math.max(0, Math.min(widest - (size - this.#finished), mostHeld - size))
  }

  /** Number of finished deliveries whose messages are not purged. */
  get finishedCount(): number {
    return this.#finished
  }

  /** The unreadable messages found so far. */
  get unreadable(): Unreadable {
    return this.#unreadable
  }

  /** True where all that was read is finished or unreadable. */
  get isFinished(): boolean {
    return this.#finished === this.#read.size && this.#forgotten.size === 0
  }

  /** True where the delivery was read and its message is not purged. */
  has(slot: number): boolean {
    return this.#read.has(slot)
  }

  /** True where the delivery was read and is not finished. */
  isOpen(slot: number): boolean {
    return this.#read.get(slot) === false
  }

  /**
   * Adds a delivery that was read. Returns false where it is known already.
   *
   * @param next the slot behind it: that of its message's next entry, or the next sequence.
   */
  add(slot: number, next = slot + 1): boolean {
    this.pass(next)
    this.#forgotten.delete(slot)
    if (this.#read.has(slot)) return false
    this.#read.set(slot, false)
    return true
  }

  /** Continues reading at a slot: what lies before it holds nothing to read. */
  pass(next: number): void {
    this.#next = Math.max(this.#next, next)
  }

  /**
   * Called with the slots that a reading found from `from` on. What was to be read again and was not
   * found no longer exists. Must be called before anything of it is begun, because what has begun
   * may be given back.
   */
  found(from: number, slots: ReadonlyArray<number>): void {
    const last = slots.at(-1) ?? 0
    for (const slot of this.#forgotten)
      if (slot >= from && slot <= last && !slots.includes(slot)) this.#forgotten.delete(slot)
  }

  /** Marks a delivery as finished: it has ended or was moved. Returns false if it was. */
  finish(slot: number): boolean {
    if (this.#read.get(slot) !== false) return false
    this.#read.set(slot, true)
    this.#finished++
    return true
  }

  /** Gives back a delivery that was not begun: it is read again. */
  forget(slot: number): void {
    if (this.#read.get(slot) !== false) return
    this.#read.delete(slot)
    // `#next` does not move back: a batch that is being read would advance it past this delivery
    // again.
    this.#forgotten.add(slot)
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

  /** Notes that a delivery has ended, or its message was removed, before it was read. */
  gone(slot: number): void {
    this.#forgotten.delete(slot)
  }

  /** The slot below which nothing is read again: all is finished or unreadable. */
  get passed(): number {
    let lowest = this.next
    for (const [slot, finished] of this.#read) if (!finished && slot < lowest) lowest = slot
    return lowest
  }

  /** The sequence below which all messages are finished, as wholes. */
  get below(): number {
    return Math.floor(Math.min(this.passed, this.#unreadable.lowest))
  }

  /** The slots of messages that are finished as wholes, by sequence. */
  get finished(): ReadonlyMap<number, ReadonlyArray<number>> {
    const byMessage = Map.groupBy(this.#read.keys(), Math.floor)
    // What is read again may lie before a message that was read in part.
    const open = new Set([...this.#forgotten, this.#next].map(Math.floor))
    for (const [seq, slots] of byMessage)
      if (open.has(seq) || slots.some((slot) => this.#read.get(slot) === false))
        byMessage.delete(seq)
    return byMessage
  }

  /** Those of them after the first unreadable message: no purge can remove them. */
  get finishedBehindUnreadable(): ReadonlyMap<number, ReadonlyArray<number>> {
    const { count, lowest } = this.#unreadable
    if (count === 0) return new Map()
    return new Map([...this.finished].filter(([seq]) => seq > lowest))
  }

  /** The sequences of messages that are finished in part. */
  get begun(): ReadonlyArray<number> {
    const whole = this.finished
    const finished = [...this.#read].filter(([, isFinished]) => isFinished)
    return [...new Set(finished.map(([slot]) => Math.floor(slot)))].filter((seq) => !whole.has(seq))
  }

  /** The slots that a purge of all below a sequence removes. */
  finishedBelow(seq: number): ReadonlyArray<number> {
    return [...this.#read.keys()].filter((slot) => slot < seq)
  }

  /** Notes that the messages of these slots were purged or removed. */
  purged(slots: ReadonlyArray<number>): void {
    for (const slot of slots) {
      if (this.#read.get(slot) === true) this.#finished--
      this.#read.delete(slot)
    }
  }
}
