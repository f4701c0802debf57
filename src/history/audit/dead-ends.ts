/** Dead letters that facts tell of, by their sequences in DEAD. */
export class DeadEnds {
  readonly #ends = new Map<number, DeadEnd>()
  /** Of those that were thrown away, what event they were of. */
  readonly #taken = new Map<number, number>()

  add(dead: number, eventSeq: number, lane: number, at: number): void {
    if (!this.#taken.has(dead) && !this.#ends.has(dead))
      this.#ends.set(dead, { eventSeq, lane, at })
  }

  /** It was thrown away: it need not be there any more. */
  take(dead: number, eventSeq: number): void {
    this.#ends.delete(dead)
    this.#taken.set(dead, eventSeq)
  }

  /** Forgets those of some events. */
  forget(isGone: (eventSeq: number) => boolean): void {
    for (const [dead, { eventSeq }] of this.#ends) if (isGone(eventSeq)) this.#ends.delete(dead)
    for (const [dead, eventSeq] of this.#taken) if (isGone(eventSeq)) this.#taken.delete(dead)
  }

  isTaken(dead: number): boolean {
    return this.#taken.has(dead)
  }

  get(dead: number): DeadEnd | undefined {
    return this.#ends.get(dead)
  }

  entries(): Iterable<[number, DeadEnd]> {
    return this.#ends
  }

  get size(): number {
    return this.#ends.size
  }
}

export interface DeadEnd {
  readonly eventSeq: number
  readonly lane: number
  /** When the fact was stored, ms since the epoch. */
  readonly at: number
}
