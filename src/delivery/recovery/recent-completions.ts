/** Minimum number of slots. */
const minSlots = 64
/** Maximum share of slots in use. */
const maxLoadFactor = 3 / 4
/** A table with this many times the needed slots is not reused. */
const muchMore = 4

const slotsFor = (expected: number): number => {
  let slots = minSlots
  while (slots * maxLoadFactor < expected) slots *= 2
  return slots
}

/** The entries of a table, without its free slots. */
export interface PackedCompletions {
  /** Keys of endpoints. */
  readonly endpoints: ReadonlyArray<string>
  /** For each entry the index of its endpoint. */
  readonly owners: Uint32Array<ArrayBuffer>
  readonly seqs: Float64Array<ArrayBuffer>
  readonly times: Float64Array<ArrayBuffer>
}

/**
 * Deliveries that have ended or wait in the backlog: when their event was stored, by endpoint and
 * event sequence. A hash table of numbers outside V8's heap, 20 bytes a slot. Thousands are added
 * each second, and in Maps they would be most of what the garbage collector traverses.
 */
export class RecentCompletions {
  /** Index of each endpoint, from 0. */
  readonly #endpoints = new Map<string, number>()
  /** Event sequences; 0 in a free slot. */
  #seqs: Float64Array
  #owners: Uint32Array
  /** When the events were stored, ms since the epoch. */
  #times: Float64Array
  #size = 0

  /** @param expected number of entries for which it is sized; it grows beyond. */
  constructor(expected = 0) {
    const slots = slotsFor(expected)
    this.#seqs = new Float64Array(slots)
    this.#owners = new Uint32Array(slots)
    this.#times = new Float64Array(slots)
  }

  /** Makes a table of packed entries. */
  static from({ endpoints, owners, seqs, times }: PackedCompletions): RecentCompletions {
    const table = new RecentCompletions(seqs.length)
    for (const key of endpoints) table.#endpoints.set(key, table.#endpoints.size)
    for (const [index, seq] of seqs.entries())
      table.#put(owners[index] ?? 0, seq, times[index] ?? 0)
    return table
  }

  get size(): number {
    return this.#size
  }

  get packed(): PackedCompletions {
    const size = this.#size
    const owners = new Uint32Array(size)
    const [seqs, times] = [new Float64Array(size), new Float64Array(size)]
    let index = 0
    for (let slot = 0; slot < this.#seqs.length; slot++) {
      const seq = this.#seqs[slot] ?? 0
      if (seq === 0) continue
      owners[index] = this.#owners[slot] ?? 0
      seqs[index] = seq
      times[index++] = this.#times[slot] ?? 0
    }
    return { endpoints: [...this.#endpoints.keys()], owners, seqs, times }
  }

  /**
   * Returns an empty table for so many entries: this one, unless it is much too large or too small.
   * Returning megabytes to the system and requesting them again each time fragments memory, and the
   * process grows.
   */
  emptied(expected: number): RecentCompletions {
    const slots = slotsFor(expected)
    if (this.#seqs.length < slots || this.#seqs.length > muchMore * slots)
      return new RecentCompletions(expected)
    this.#endpoints.clear()
    this.#seqs.fill(0)
    this.#size = 0
    return this
  }

  /**
   * @param key of the endpoint.
   * @param eventSeq 1 at least.
   * @param at when the event was stored, ms since the epoch.
   */
  set(key: string, eventSeq: number, at: number): void {
    if (this.#size >= this.#seqs.length * maxLoadFactor) this.#grow()
    const owner = this.#endpoints.get(key) ?? this.#endpoints.size
    if (owner === this.#endpoints.size) this.#endpoints.set(key, owner)
    this.#put(owner, eventSeq, at)
  }

  get(key: string, eventSeq: number): number | undefined {
    const owner = this.#endpoints.get(key)
    if (owner === undefined) return undefined
    const slot = this.#slotOf(owner, eventSeq)
    return this.#seqs[slot] === 0 ? undefined : this.#times[slot]
  }

  #put(owner: number, eventSeq: number, at: number): void {
    const slot = this.#slotOf(owner, eventSeq)
    if (this.#seqs[slot] === 0) this.#size++
    this.#seqs[slot] = eventSeq
    this.#owners[slot] = owner
    this.#times[slot] = at
  }

  /** Returns the slot of an entry, or the free slot where it would go. */
  #slotOf(owner: number, eventSeq: number): number {
    const seqs = this.#seqs
    const last = seqs.length - 1
    const hash = Math.imul(eventSeq, 0x9e3779b1) ^ Math.imul(owner + 1, 0x85ebca6b)
    let slot = (hash ^ (hash >>> 15)) & last
    while (seqs[slot] !== 0 && (seqs[slot] !== eventSeq || this.#owners[slot] !== owner))
      slot = (slot + 1) & last
    return slot
  }

  #grow(): void {
    const [seqs, owners, times] = [this.#seqs, this.#owners, this.#times]
    const slots = 2 * seqs.length
    this.#seqs = new Float64Array(slots)
    this.#owners = new Uint32Array(slots)
    this.#times = new Float64Array(slots)
    this.#size = 0
    for (let slot = 0; slot < seqs.length; slot++) {
      const eventSeq = seqs[slot] ?? 0
      if (eventSeq !== 0) this.#put(owners[slot] ?? 0, eventSeq, times[slot] ?? 0)
    }
  }
}
