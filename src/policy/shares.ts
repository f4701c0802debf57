/**
 * Bounds what is used of something, by key before in all. A key gets no more than is left free: one
 * alone at most half, two that want all of it a third each, and so there is always something left for
 * the next one (the dynamic threshold by which switches share their buffers).
 */
export class Shares {
  readonly #most: number
  readonly #mostOfOne: number
  readonly #used = new Map<string, number>()
  #total = 0

  /**
   * @param most of it in all.
   * @param mostOfOne of it for one key. (Default: half of it)
   */
  constructor(most: number, mostOfOne: number = most) {
    this.#most = most
    this.#mostOfOne = mostOfOne
  }

  /** How much is used by all keys. */
  get total(): number {
    return this.#total
  }

  /** How much a key uses. */
  usedBy(key: string): number {
    return this.#used.get(key) ?? 0
  }

  /** Takes some of it for a key. Returns false, and takes nothing, if that is more than its share. */
  take(key: string, amount = 1): boolean {
    const wanted = this.usedBy(key) + amount
    if (wanted > Math.min(this.#mostOfOne, this.#most - this.#total - amount)) return false
    this.#used.set(key, wanted)
    this.#total += amount
    return true
  }

  /** Gives back what was taken for a key. */
  give(key: string, amount = 1): void {
    const left = this.usedBy(key) - amount
    if (left > 0) this.#used.set(key, left)
    else this.#used.delete(key)
    this.#total -= amount
  }
}
