/** Generations kept besides the present one. */
const kept = 2

/**
 * What a partition's owner remembers of messages that have ended, in case the broker did not hear
 * of it: an acknowledgement may be lost, and after a crash the broker may forget some. A message
 * that comes back is acknowledged again and not attempted.
 *
 * It also knows the floor: the sequence of HISTORY below which all is settled, from where a new
 * owner reads.
 */
export class Settled {
  readonly #generations: Array<Set<number>> = [new Set()]
  readonly #floors: Array<number> = []
  readonly #open = new Map<symbol, number>()
  #lastKnown: number

  /** @param lastKnown last sequence of HISTORY at the start. */
  constructor(lastKnown: number) {
    this.#lastKnown = lastKnown
  }

  has(seq: number): boolean {
    return this.#generations.some((generation) => generation.has(seq))
  }

  add(seq: number): void {
    this.#generations[0]?.add(seq)
  }

  /**
   * Marks that a fact is about to be appended; `close` it when its message has been released.
   * Until then the floor stays below it.
   */
  open(): symbol {
    const mark = Symbol()
    this.#open.set(mark, this.#lastKnown)
    return mark
  }

  /** The fact was stored at this sequence of HISTORY. */
  stored(seq: number): void {
    if (seq > this.#lastKnown) this.#lastKnown = seq
  }

  close(mark: symbol): void {
    this.#open.delete(mark)
  }

  /**
   * Forgets the oldest generation. To be called once per ack_wait in which messages could come
   * back without hindrance.
   *
   * @returns the floor that may now be stored, or undefined while it is too early.
   */
  rotate(): number | undefined {
    this.#generations.unshift(new Set())
    this.#floors.unshift(Math.min(this.#lastKnown, ...this.#open.values()))
    if (this.#generations.length <= kept + 1) return undefined
    this.#generations.pop()
    return this.#floors.pop()
  }
}
