import { OrderedMap } from "../../broker/ordered-map.ts"

interface Kept<A> {
  readonly tenant: string
  readonly bytes: number
  readonly value: A
}

interface Tenant<A> {
  bytes: number
  /** Least recently used first. */
  readonly kept: OrderedMap<string, Kept<A>>
}

/**
 * A cache of a number of bytes, shared by tenants. What was not used for longest leaves first, but a
 * tenant that holds more than half of it gives way to others before they do to each other.
 */
export class EventCache<A> {
  readonly #maxBytes: number
  /** Least recently used first. */
  readonly #all = new OrderedMap<string, Kept<A>>()
  readonly #tenants = new Map<string, Tenant<A>>()
  /** The tenant that was seen with more than half. */
  #largest: Tenant<A> | undefined
  #bytes = 0

  /** @param maxBytes what it holds at most. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  get(name: string): A | undefined {
    const kept = this.#all.get(name)
    if (kept === undefined) return undefined
    this.#all.renew(name)
    this.#tenants.get(kept.tenant)?.kept.renew(name)
    return kept.value
  }

  /** Keeps a value, unless it would take more than half of the cache by itself. */
  add(tenant: string, name: string, value: A, bytes: number): void {
    if (bytes > this.#maxBytes / 2 || this.#all.has(name)) return
    const mine = this.#tenants.get(tenant) ?? { bytes: 0, kept: new OrderedMap() }
    const kept = { tenant, bytes, value }
    this.#tenants.set(tenant, mine)
    this.#all.set(name, kept)
    mine.kept.set(name, kept)
    mine.bytes += bytes
    this.#bytes += bytes
    if (mine.bytes > this.#maxBytes / 2) this.#largest = mine
    while (this.#bytes > this.#maxBytes) this.#removeOne()
  }

  #removeOne(): void {
    const isLarge = (this.#largest?.bytes ?? 0) > this.#maxBytes / 2
    const from = isLarge && this.#largest !== undefined ? this.#largest.kept : this.#all
    const oldest = from.takeOldest()
    if (oldest === undefined) return
    const { bytes, tenant } = oldest.value
    this.#all.delete(oldest.key)
    this.#bytes -= bytes
    const of = this.#tenants.get(tenant)
    if (of === undefined) return
    of.kept.delete(oldest.key)
    of.bytes -= bytes
    if (of.kept.size === 0) this.#tenants.delete(tenant)
  }
}
