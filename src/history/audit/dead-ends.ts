/** Identifies a dead letter. Its sequence alone does not: a DEAD that lost its end reuses them. */
export interface LetterOf {
  /** Its sequence in DEAD. */
  readonly dead: number
  readonly eventSeq: number
  readonly lane: number
}

const nameOf = ({ dead, eventSeq, lane }: LetterOf): string => `${dead}.${eventSeq}.${lane}`

/** The dead letters that facts name. */
export class DeadEnds {
  readonly #ends = new Map<string, DeadEnd>()
  /** Those that were discarded. */
  readonly #discarded = new Map<string, LetterOf>()

  /** @param at when the fact was stored, ms since the epoch. */
  add(letter: LetterOf, at: number): void {
    const name = nameOf(letter)
    if (!this.#discarded.has(name) && !this.#ends.has(name)) this.#ends.set(name, { ...letter, at })
  }

  /** A discarded dead letter need not be in DEAD any more. */
  discard(letter: LetterOf): void {
    const name = nameOf(letter)
    this.#ends.delete(name)
    this.#discarded.set(name, letter)
  }

  /** Drops the dead letters of some events. */
  forget(isGone: (eventSeq: number) => boolean): void {
    for (const [name, { eventSeq }] of this.#ends) if (isGone(eventSeq)) this.#ends.delete(name)
    for (const [name, { eventSeq }] of this.#discarded)
      if (isGone(eventSeq)) this.#discarded.delete(name)
  }

  isDiscarded(letter: LetterOf): boolean {
    return this.#discarded.has(nameOf(letter))
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
