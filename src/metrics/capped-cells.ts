/** Stands for all that came once the cap was reached. */
export const others = "_other"

/**
 * Values by name, of which there are at most `cap`; whatever comes later shares one. So a label
 * that users choose bounds neither memory nor series.
 */
export class CappedCells<A> {
  readonly #make: (name: string) => A
  readonly #cap: number
  readonly #cells = new Map<string, A>()

  constructor(cap: number, make: (name: string) => A) {
    this.#cap = cap
    this.#make = make
  }

  of(name: string): A {
    return this.#cells.get(name) ?? this.#add(name)
  }

  get all(): Iterable<A> {
    return this.#cells.values()
  }

  #add(name: string): A {
    if (this.#cells.size >= this.#cap) return this.#others
    const made = this.#make(name)
    this.#cells.set(name, made)
    return made
  }

  get #others(): A {
    const known = this.#cells.get(others)
    if (known !== undefined) return known
    const made = this.#make(others)
    this.#cells.set(others, made)
    return made
  }
}
