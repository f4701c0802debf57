/**
 * Goes round a collection that changes meanwhile, some elements at a time: work that is due for
 * thousands of them never takes the thread for long.
 */
export class Turns<A> {
  readonly #all: () => Iterator<A>
  #left: Iterator<A>

  /** @param all begins a round: an iterator of a Map or Set, which sees what is added and removed. */
  constructor(all: () => Iterator<A>) {
    this.#all = all
    this.#left = all()
  }

  /** Returns the next element, after the last one the first; undefined where there is none. */
  next(): A | undefined {
    const next = this.#left.next()
    if (next.done !== true) return next.value
    this.#left = this.#all()
    const first = this.#left.next()
    return first.done === true ? undefined : first.value
  }
}
