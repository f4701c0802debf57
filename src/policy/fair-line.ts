/**
 * What waits, by key: one of each key in turn, and of one key in the order in which it came. So a key
 * for which much waits delays another one by its turn, whatever waits before it.
 */
export class FairLine<A> {
  readonly #mostOfOne: number
  /** The key whose turn is next comes first. */
  readonly #lines = new Map<string, Set<A>>()

  /** @param mostOfOne how much of one key may wait. */
  constructor(mostOfOne: number) {
    this.#mostOfOne = mostOfOne
  }

  /** Adds what waits. Returns false, and does not, where too much of its key waits. */
  add(key: string, item: A): boolean {
    const line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, new Set([item]))
    else if (line.size >= this.#mostOfOne) return false
    else line.add(item)
    return true
  }

  /** Takes what is next, of the keys that may take their turn; undefined if nothing of these waits. */
  next(mayGo: (key: string) => boolean = () => true): A | undefined {
    for (const [key, line] of this.#lines)
      for (const item of line) {
        if (!mayGo(key)) break
        this.#lines.delete(key)
        line.delete(item)
        if (line.size > 0) this.#lines.set(key, line)
        return item
      }
    return undefined
  }

  /** Takes out what need not wait any more. */
  remove(key: string, item: A): void {
    const line = this.#lines.get(key)
    if (line?.delete(item) === true && line.size === 0) this.#lines.delete(key)
  }
}
