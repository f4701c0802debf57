import { OrderedMap } from "../broker/ordered-map.ts"

interface Kept<A> {
  readonly value: A
  /** Used since it was last considered for eviction. */
  isUsed: boolean
}

/**
 * A cache with a maximum size, for values that can be made again. Eviction uses the CLOCK
 * (second-chance) algorithm: each addition to a full cache evicts one value that was not used
 * lately. A use costs one look-up and maintains no order.
 */
export class Recent<A> {
  readonly #kept = new OrderedMap<string, Kept<A>>()
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  get(key: string): A | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    kept.isUsed = true
    return kept.value
  }

  add(key: string, value: A): void {
    if (this.#kept.size >= this.#most && !this.#kept.has(key)) this.#dropOne()
    this.#kept.set(key, { value, isUsed: false })
  }

  delete(key: string): void {
    this.#kept.delete(key)
  }

  /** A value that was used since it was last considered moves to the end. */
  #dropOne(): void {
    let oldest = this.#kept.takeOldest()
    while (oldest?.value.isUsed === true) {
      oldest.value.isUsed = false
      this.#kept.set(oldest.key, oldest.value)
      oldest = this.#kept.takeOldest()
    }
  }
}
