/** Slots at the most, and uses of them until numbers come again: what is late is not taken for another. */
const maxSlots = 2 ** 20
const uses = 2 ** 32

/**
 * What is awaited, by a number that does not come again for long. A list, and not a Map, for the same reason
 * as the engine's chains: a Map that is never empty makes all that it ever held old.
 */
export class SlotMap<T> {
  readonly #values: Array<T | undefined> = []
  readonly #tokens: Array<number> = []
  readonly #free: Array<number> = []
  #uses = 0

  /** Keeps it until it is taken by the number that is returned. */
  add(value: T): number {
    const slot = this.#free.pop() ?? this.#values.length
    this.#uses = (this.#uses + 1) % uses
    const token = this.#uses * maxSlots + slot
    this.#values[slot] = value
    this.#tokens[slot] = token
    return token
  }

  /** Gives back what was kept by a number, once. */
  take(token: number): T | undefined {
    const slot = token % maxSlots
    if (this.#tokens[slot] !== token) return undefined
    const value = this.#values[slot]
    this.#values[slot] = undefined
    this.#tokens[slot] = -1
    this.#free.push(slot)
    return value
  }

  /** All that is kept, by number; in no order. */
  *entries(): Generator<readonly [token: number, value: T], void> {
    for (const [slot, value] of this.#values.entries()) {
      const token = this.#tokens[slot]
      if (value !== undefined && token !== undefined) yield [token, value]
    }
  }
}
