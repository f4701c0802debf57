/**
 * Maximum number of slots, and of uses before a token repeats: a late token must not match a newer
 * value.
 */
const maxSlots = 2 ** 20
const uses = 2 ** 32

/**
 * Values by token; a token repeats only after a long time. An array instead of a Map, for the same
 * reason as `IntrusiveList`: a Map that is never empty gets everything that it ever held promoted
 * to the old generation.
 */
export class SlotMap<T> {
  readonly #values: Array<T | undefined> = []
  readonly #tokens: Array<number> = []
  readonly #free: Array<number> = []
  #uses = 0

  /** Stores a value and returns the token that takes it. */
  add(value: T): number {
    const slot = this.#free.pop() ?? this.#values.length
    this.#uses = (this.#uses + 1) % uses
    const token = this.#uses * maxSlots + slot
    this.#values[slot] = value
    this.#tokens[slot] = token
    return token
  }

  /** Returns and removes the value of a token; undefined if there is none. */
  take(token: number): T | undefined {
    const slot = token % maxSlots
    if (this.#tokens[slot] !== token) return undefined
    const value = this.#values[slot]
    this.#values[slot] = undefined
    this.#tokens[slot] = -1
    this.#free.push(slot)
    return value
  }

  /** All values by token, in no particular order. */
  *entries(): Generator<readonly [token: number, value: T], void> {
    for (const [slot, value] of this.#values.entries()) {
      const token = this.#tokens[slot]
      if (value !== undefined && token !== undefined) yield [token, value]
    }
  }
}
