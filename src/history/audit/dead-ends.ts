/** What tells a dead letter from others: DEAD may lose its end, and give a sequence again. */
export interface LetterOf {
  /** Its sequence in DEAD. */
  readonly dead: number
  readonly eventSeq: number
  readonly lane: number
}

const nameOf = ({ dead, eventSeq, lane }: LetterOf): string => `${dead}.${eventSeq}.${lane}`

/** Dead letters that facts tell of. */
export class DeadEnds {
  readonly #ends = new Map<string, DeadEnd>()
  /** Those that were thrown away. */
  readonly #taken = new Map<string, LetterOf>()

  /** @param at when the fact was stored, ms since the epoch. */
  add(letter: LetterOf, at: number): void {
    const name = nameOf(letter)
    if (!this.#taken.has(name) && !this.#ends.has(name)) this.#ends.set(name, { ...letter, at })
  }

  /** It was thrown away: it need not be there any more. */
  take(letter: LetterOf): void {
    const name = nameOf(letter)
    this.#ends.delete(name)
    this.#taken.set(name, letter)
  }

  /** Forgets those of some events. */
  forget(isGone: (eventSeq: number) => boolean): void {
    for (const [name, { eventSeq }] of this.#ends) if (isGone(eventSeq)) this.#ends.delete(name)
    for (const [name, { eventSeq }] of this.#taken) if (isGone(eventSeq)) this.#taken.delete(name)
  }

  isTaken(letter: LetterOf): boolean {
    return this.#taken.has(nameOf(letter))
  }

  has(letter: LetterOf): boolean {
    return this.#ends.has(nameOf(letter))
  }

  all(): Iterable<DeadEnd> {
    return this.#ends.values()
  }

  get size(): number {
    return this.#ends.size
  }
}

export interface DeadEnd extends LetterOf {
  /** When the fact was stored, ms since the epoch. */
  readonly at: number
}
