/** An element of an intrusive list; it can be in one list at a time. */
export interface Linked<T> {
  before: T | undefined
  after: T | undefined
}

/**
 * A list in order of insertion, with removal in constant time.
 *
 * In-flight work lives in intrusive lists instead of Sets because of the collector of the young
 * generation. A Set replaces its table every few hundred insertions and removals, and each old
 * table refers to the next. Once one of them is promoted to the old generation, all later ones are
 * too, with the entries that they held (docs/internals/performance.md).
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

  /** Returns false if the element is not in the list. */
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

  /** Removes and returns all elements. */
  takeAll(): Array<T> {
    const all = [...this]
    for (const link of all) this.remove(link)
    return all
  }

  /** Iterates from first to last. The element that was yielded last may be removed meanwhile. */
  *[Symbol.iterator](): Generator<T, void> {
    let link = this.#first
    while (link !== undefined) {
      const { after } = link
      yield link
      link = after
    }
  }
}
