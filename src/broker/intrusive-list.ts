/** What can be in a chain, in one at a time. */
export interface Linked<T> {
  before: T | undefined
  after: T | undefined
}

/**
 * What is under way, in the order in which it began; each can be taken out at once.
 *
 * This is not a Set because of the collector of the young generation. A Set replaces its table every
 * few hundred entries that come and go, and each old table refers to the next. Once one of them has
 * been moved to the old generation, all that follow are, with what they held (docs/performance.md).
 */
export class IntrusiveList<T extends Linked<T>> {
  #first: T | undefined
  #last: T | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  get first(): T | undefined {
    return this.#first
  }

  add(link: T): void {
    link.before = this.#last
    if (this.#last === undefined) this.#first = link
    else this.#last.after = link
    this.#last = link
    this.#size++
  }

  has(link: T): boolean {
    return link.before !== undefined || this.#first === link
  }

  /** False where it is not in it. */
  remove(link: T): boolean {
    if (!this.has(link)) return false
    const { after, before } = link
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    link.before = undefined
    link.after = undefined
    this.#size--
    return true
  }

  /** Takes all of them out. */
  takeAll(): Array<T> {
    const all = [...this]
    for (const link of all) this.remove(link)
    return all
  }

  /** From the first to the last; the one that was shown last may be taken out meanwhile. */
  *[Symbol.iterator](): Generator<T, void> {
    let link = this.#first
    while (link !== undefined) {
      const { after } = link
      yield link
      link = after
    }
  }
}
