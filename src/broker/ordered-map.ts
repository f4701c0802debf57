import type { Linked } from "./intrusive-list.ts"
import { IntrusiveList } from "./intrusive-list.ts"

class Entry<K, V> implements Linked<Entry<K, V>> {
  before: Entry<K, V> | undefined = undefined
  after: Entry<K, V> | undefined = undefined
  readonly key: K
  /** Undefined once it is removed. */
  value: V | undefined

  constructor(key: K, value: V) {
    this.key = key
    this.value = value
  }
}

/**
 * A map in order of insertion, for entries that come and go.
 *
 * - Its oldest entry is taken in constant time. A Map's is not: V8 leaves removed entries in the table
 *   until it is made anew, and who asks for the first passes all of them, 9 µs with 10,000 entries.
 * - A value that was removed is garbage at once. A Map's is not: V8's table refers to the one that took
 *   its place, so once a table has outlived two collections, each later one does with all that it has
 *   held. That is 2.5 of 25 MB in each collection of a worker that stores 1,500 deliveries a second.
 */
export class OrderedMap<K, V> {
  readonly #entries = new Map<K, Entry<K, V>>()
  readonly #order = new IntrusiveList<Entry<K, V>>()

  get size(): number {
    return this.#entries.size
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value
  }

  get oldestKey(): K | undefined {
    return this.#order.first?.key
  }

  /** Adds an entry at the end. One that is there keeps its place. */
  set(key: K, value: V): void {
    const known = this.#entries.get(key)
    if (known !== undefined) {
      known.value = value
      return
    }
    const entry = new Entry(key, value)
    this.#entries.set(key, entry)
    this.#order.add(entry)
  }

  /** Moves an entry to the end, where it is there. */
  renew(key: K): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#order.remove(entry)
    this.#order.add(entry)
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && this.#remove(entry)
  }

  /** Removes the oldest entry and returns it. */
  takeOldest(): { readonly key: K; readonly value: V } | undefined {
    const { first } = this.#order
    if (first === undefined) return undefined
    const { key, value } = first
    this.#remove(first)
    return { key, value: value as V }
  }

  /** Iterates from the oldest to the newest. The entry that was yielded last may be removed meanwhile. */
  *[Symbol.iterator](): Generator<{ readonly key: K; readonly value: V }, void> {
    for (const { key, value } of this.#order) yield { key, value: value as V }
  }

  #remove(entry: Entry<K, V>): boolean {
    this.#order.remove(entry)
    entry.value = undefined
    return this.#entries.delete(entry.key)
  }
}

/** A set in order of insertion whose oldest element is taken in constant time. */
export class OrderedSet<K> {
  readonly #entries = new OrderedMap<K, undefined>()

  get size(): number {
    return this.#entries.size
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  get oldest(): K | undefined {
    return this.#entries.oldestKey
  }

  /** Adds an element at the end. One that is there keeps its place. */
  add(key: K): void {
    this.#entries.set(key, undefined)
  }

  delete(key: K): boolean {
    return this.#entries.delete(key)
  }

  /** Removes the oldest element and returns it. */
  takeOldest(): K | undefined {
    return this.#entries.takeOldest()?.key
  }
}
