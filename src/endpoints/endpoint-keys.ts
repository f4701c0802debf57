import { Context, Effect, Layer } from "effect"
import { Broker } from "../broker/broker.ts"
import type { FollowedEntries } from "../broker/bucket-follow.ts"
import { followBucket } from "../broker/bucket-follow.ts"
import { Reservations } from "../broker/reservations.ts"
import { isEndpointKey } from "../domain/endpoint.ts"
import { type IdFilter, isIdWanted } from "../domain/endpoint-id-filter.ts"

/** How long a change may be missing here if the watch has died, ms. */
const lagMs = 2_000

/** A tenant, and how many endpoints it has. */
export interface TenantCount {
  readonly tenant: string
  readonly endpoints: number
}

/** The keys of endpoints, `<tenant>.<endpoint>`, in order. */
export class SortedKeys implements FollowedEntries {
  #keys: Array<string> = []
  /** Keys as they came, until all are there: they are sorted once. */
  #first: Set<string> | undefined = new Set()

  hear(key: string, text: string | undefined): void {
    if (!isEndpointKey(key)) return
    if (this.#first !== undefined) {
      if (text === undefined) this.#first.delete(key)
      else this.#first.add(key)
      return
    }
    const index = this.#at(key)
    const isThere = this.#keys[index] === key
    if (text === undefined && isThere) this.#keys.splice(index, 1)
    if (text !== undefined && !isThere) this.#keys.splice(index, 0, key)
  }

  complete(): void {
    this.#keys = [...(this.#first ?? [])].sort()
    this.#first = undefined
  }

  /** Returns the index of the first key that is not before another text. */
  #at(text: string): number {
    let [low, high] = [0, this.#keys.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#keys[middle] ?? "") < text) low = middle + 1
      else high = middle
    }
    return low
  }

  /**
   * Returns keys in order. The ids of one tenant are found by halving; those of all tenants by a walk
   * through the names, some 5 ms of 100,000.
   *
   * @param tenant (Default: all)
   * @param after the key after which they begin. (Default: at the first)
   * @param ids (Default: any)
   * @param isWanted tells of a key whether it is looked for. (Default: all are)
   */
  page(
    tenant: string | undefined,
    after: string | undefined,
    limit: number,
    ids?: IdFilter,
    isWanted: (key: string) => boolean = () => true
  ): ReadonlyArray<string> {
    const prefix = tenant === undefined ? "" : `${tenant}.${ids?.text ?? ""}`
    // No key has a character this low.
    const begin = Math.max(this.#at(prefix), after === undefined ? 0 : this.#at(`${after}\0`))
    const found: Array<string> = []
    for (let index = begin; found.length < limit; index++) {
      const key = this.#keys[index]
      if (key?.startsWith(prefix) !== true) break
      if (ids === undefined || isIdWanted(key.slice(key.indexOf(".") + 1), ids)) {
        if (isWanted(key)) found.push(key)
      } else if (tenant !== undefined) break
    }
    return found
  }

  has(key: string): boolean {
    return this.#keys[this.#at(key)] === key
  }

  /** Returns how many endpoints a tenant has. */
  count(tenant: string): number {
    return this.#at(`${tenant}.\u{7f}`) - this.#at(`${tenant}.`)
  }

  /** Returns tenants in the order of their keys. */
  tenants(after: string | undefined, limit: number): ReadonlyArray<TenantCount> {
    const found: Array<TenantCount> = []
    let index = after === undefined ? 0 : this.#at(`${after}.\u{7f}`)
    for (let key = this.#keys[index]; key !== undefined; key = this.#keys[index]) {
      if (found.length === limit) break
      const tenant = key.slice(0, key.indexOf("."))
      const end = this.#at(`${tenant}.\u{7f}`)
      found.push({ tenant, endpoints: end - index })
      index = end
    }
    return found
  }
}

/**
 * The names of all endpoints, kept current: to list them takes neither a request nor their
 * configurations in memory.
 */
export class EndpointKeys extends Context.Service<
  EndpointKeys,
  {
    readonly current: () => Pick<SortedKeys, "count" | "has" | "page" | "tenants">
    /** Endpoints that are about to be added. */
    readonly reservations: Reservations
  }
>()("petrel/endpoints/EndpointKeys") {
  /** Ready when all names have been read once. */
  static readonly layer = Layer.effect(
    EndpointKeys,
    Effect.gen(function* () {
      const { names } = yield* Broker
      const options = { bucket: names.buckets.endpoints, keysOnly: true, lagMs }
      const current = yield* followBucket(options, () => new SortedKeys())
      return EndpointKeys.of({ current, reservations: new Reservations() })
    })
  )
}
