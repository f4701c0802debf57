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

/** How fast past use is forgotten: of what was used this long ago, half counts. */
const halfLifeMs = 1_000
/** What counts as nothing, ms. */
const forgottenMs = 0.01
/** Keys whose use is remembered before those are looked for that can be forgotten. */
const manyKeys = 1_024

/** What a key has used, as of a time. */
interface Use {
  ms: number
  at: number
}

/** What waits of one key: work that was begun goes before what is new. */
interface Line<A> {
  readonly begun: Set<A>
  readonly fresh: Set<A>
}

/**
 * Turns of a thread's time, by key: next is the key that has used least of it lately, and of one key
 * what was begun, then what came first. So one that uses little never waits for one that uses much, and those that want
 * more than there is get equal parts, whatever a turn of each takes. Times are ms of one clock.
 */
export class FairTime<A> {
  readonly #used = new Map<string, Use>()
  readonly #waiting = new Map<string, Line<A>>()
  #size = 0
  /** What the key that was last had used. */
  #lastUsed = 0
  #manyKeys = manyKeys

  /** How much waits. */
  get size(): number {
    return this.#size
  }

  /** Notes that a key has used so much of the time. */
  charge(key: string, ms: number, now: number): void {
    const used = this.usedBy(key, now) + ms
    this.#used.set(key, { ms: used, at: now })
    if (this.#used.size > this.#manyKeys) this.#forget(now)
  }

  /** Returns what a key has used lately; the longer ago, the less of it. */
  usedBy(key: string, now: number): number {
    const use = this.#used.get(key)
    return use === undefined ? 0 : use.ms * 2 ** ((use.at - now) / halfLifeMs)
  }

  /** @param isBegun true for the rest of what had its turn. */
  add(key: string, item: A, isBegun = false): void {
    const line = this.#waiting.get(key) ?? { begun: new Set(), fresh: new Set() }
    ;(isBegun ? line.begun : line.fresh).add(item)
    this.#waiting.set(key, line)
    this.#size++
  }

  /**
   * Returns true for a key that need not wait at all: it has used less than half of what the key had
   * that was last, and so it would be next, and has had few turns that others waited for.
   */
  mayPass(key: string, now: number): boolean {
    return !this.#waiting.has(key) && 2 * this.usedBy(key, now) < this.#lastUsed
  }

  /** Takes what is next; undefined if nothing waits. */
  next(now: number): A | undefined {
    let least = Number.POSITIVE_INFINITY
    let nextKey: string | undefined
    for (const key of this.#waiting.keys()) {
      const used = this.usedBy(key, now)
      if (used >= least) continue
      least = used
      nextKey = key
    }
    const line = nextKey === undefined ? undefined : this.#waiting.get(nextKey)
    if (nextKey === undefined || line === undefined) return undefined
    this.#lastUsed = least
    for (const items of [line.begun, line.fresh])
      for (const item of items) {
        this.remove(nextKey, item)
        return item
      }
    return undefined
  }

  /** Takes out what need not wait any more. */
  remove(key: string, item: A): void {
    const line = this.#waiting.get(key)
    if (line === undefined || !(line.begun.delete(item) || line.fresh.delete(item))) return
    this.#size--
    if (line.begun.size + line.fresh.size === 0) this.#waiting.delete(key)
  }

  #forget(now: number): void {
    for (const key of this.#used.keys())
      if (this.usedBy(key, now) < forgottenMs) this.#used.delete(key)
    // Else it would look through all of them with each charge.
    this.#manyKeys = Math.max(manyKeys, 2 * this.#used.size)
  }
}
