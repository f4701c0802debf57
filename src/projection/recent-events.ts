/** How many of the newest events are known one by one; takes an eighth of it in bytes. */
const span = 8 * 1_024 * 1_024

/**
 * Which events facts have told of. Most facts are the first one of their event, and need no search
 * for what is known of it. Says `true` where it does not know.
 */
export class RecentEvents {
  readonly #bits = new Uint8Array(span / 8)
  /** Up to here nothing is known. */
  #floor: number
  #newest: number

  /** @param newest the highest sequence of an event that earlier facts may have told of. */
  constructor(newest: number) {
    this.#floor = newest
    this.#newest = newest
  }

  /** The highest sequence of an event so far. */
  get newest(): number {
    return this.#newest
  }

  /** True if a fact may have told of the event before; from now on it is one of these. */
  mayBeKnown(eventSeq: number): boolean {
    if (eventSeq > this.#newest) this.#advance(eventSeq)
    if (eventSeq <= this.#floor) return true
    const index = (eventSeq % span) >>> 3
    const bit = 1 << (eventSeq % 8)
    const before = this.#bits[index] ?? 0
    this.#bits[index] = before | bit
    return (before & bit) !== 0
  }

  #advance(newest: number): void {
    if (newest - this.#newest >= span) this.#bits.fill(0)
    else
      for (let seq = this.#newest + 1; seq <= newest; seq++) {
        const index = (seq % span) >>> 3
        this.#bits[index] = (this.#bits[index] ?? 0) & ~(1 << (seq % 8))
      }
    this.#newest = newest
    this.#floor = Math.max(this.#floor, newest - span)
  }
}
