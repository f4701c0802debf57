interface Kept<A> {
  readonly value: A
  /** Since it was last considered for being dropped. */
  isUsed: boolean
}

/**
 * What can be made again, by its key: only so many are kept, and of those that are not used any
 * more one goes for each that is added. A use costs a look-up and no order is kept.
 */
export class Recent<A> {
  readonly #kept = new Map<string, Kept<A>>()
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
    if (this.#kept.size >= this.#most) this.#dropOne()
    this.#kept.set(key, { value, isUsed: false })
  }

  delete(key: string): void {
    this.#kept.delete(key)
  }

  /** One that was used since it was looked at last goes to the end of the line. */
  #dropOne(): void {
    for (const [key, kept] of this.#kept) {
      this.#kept.delete(key)
      if (!kept.isUsed) return
      kept.isUsed = false
      this.#kept.set(key, kept)
    }
  }
}
