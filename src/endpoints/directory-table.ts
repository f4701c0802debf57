import { Result } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { TypeIndex } from "../domain/type-filter.ts"
import { decodeEndpoint } from "./endpoint-value.ts"
import type { LiveEndpoint } from "./live-endpoint.ts"
import { makeLive, type Windows, windowsOf } from "./live-endpoint.ts"
import { Recent } from "./recent.ts"
import type { ShownValue } from "./watch-lag.ts"

/** The part of an endpoint that routing needs. */
export interface RoutableEndpoint extends Windows {
  readonly id: string
  /** Key of its configuration in the bucket. */
  readonly key: string
  readonly generation: string
  readonly revision: number
  readonly isDisabled: boolean
}

/**
 * A row keeps the configuration as text: decoded and made ready, it takes several times the memory.
 */
interface Row extends RoutableEndpoint {
  /** Type filters, separated by spaces. */
  readonly types: string
  /** The configuration as the bucket holds it; it is known to decode. */
  readonly text: string
}

/** Maximum number of cached live endpoints: 2 KB each, and 20 µs to make one again. */
const maxReadyEndpoints = 10_000
/**
 * Maximum number of tenants with a cached type index: 1 KB each at least, and 1 µs per endpoint to
 * build one again.
 */
const maxIndexedTenants = 10_000

/**
 * The endpoints in memory. A row holds a few fields of an endpoint and its configuration as text.
 * What a delivery needs is made from it on use, and cached.
 */
export class DirectoryTable {
  readonly #rows = new Map<string, Row>()
  readonly #tenants = new Map<string, Set<Row>>()
  /**
   * Keys of disabled and suspended endpoints: each partition asks for them, and a search through all rows takes
   * long.
   */
  readonly #givenUp = new Set<string>()
  readonly #removed = new Map<string, number>()
  /** Ids of endpoints without any readable configuration so far, by tenant. */
  readonly #unreadable = new Map<string, Set<string>>()
  readonly #ready = new Recent<LiveEndpoint>(maxReadyEndpoints)
  readonly #indexes = new Recent<TypeIndex<Row>>(maxIndexedTenants)

  #version = 0

  /** Changes whenever an endpoint changes. */
  get version(): number {
    return this.#version
  }

  find(key: string): LiveEndpoint | undefined {
    return this.#ready.get(key) ?? this.#makeReady(key)
  }

  generationOf(key: string): string | undefined {
    return this.#rows.get(key)?.generation
  }

  /** Returns 0 for an unknown key. */
  revisionOf(key: string): number {
    return this.#rows.get(key)?.revision ?? this.#removed.get(key) ?? 0
  }

  /**
   * Returns the last known value of a key, as the bucket would show it; revision 0 for an unknown
   * key.
   */
  shown(key: string): ShownValue {
    return { revision: this.revisionOf(key), text: this.#rows.get(key)?.text }
  }

  isUnreadable(key: string): boolean {
    const [tenant = "", id = ""] = key.split(".")
    return this.#unreadable.get(tenant)?.has(id) === true
  }

  match(tenant: string, type: string): ReadonlyArray<RoutableEndpoint> {
    const index = this.#indexes.get(tenant) ?? this.#makeIndex(tenant)
    if (index === undefined) return []
    return [...index.match(type)].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  givenUp(): ReadonlyArray<string> {
    return [...this.#givenUp]
  }

  unreadable(tenant: string): ReadonlyArray<string> {
    return [...(this.#unreadable.get(tenant) ?? [])]
  }

  /** Records an unreadable configuration. An earlier readable one stays in force. */
  cannotRead(key: string): void {
    if (this.#rows.has(key)) return
    const [tenant = "", id = ""] = key.split(".")
    this.#version++
    const ids = this.#unreadable.get(tenant) ?? new Set()
    this.#unreadable.set(tenant, ids.add(id))
  }

  /** @param text the text that `config` was decoded from. */
  put(key: string, config: Endpoint, text: string, revision: number): void {
    const { generation, id, tenant } = config
    this.#drop(key)
    const row: Row = {
      id,
      key,
      generation,
      revision,
      isDisabled: config.disabled !== undefined,
      ...windowsOf(config),
      types: config.types.join(" "),
      text
    }
    this.#rows.set(key, row)
    if (row.isDisabled || config.suspended !== undefined) this.#givenUp.add(key)
    this.#removed.delete(key)
    const rows = this.#tenants.get(tenant)
    if (rows === undefined) this.#tenants.set(tenant, new Set([row]))
    else rows.add(row)
    this.#indexes.get(tenant)?.add(config.types, row)
  }

  remove(key: string, revision: number): void {
    this.#drop(key)
    this.#removed.set(key, revision)
  }

  /** Returns the known keys that a complete reading did not show. */
  absent(seen: ReadonlySet<string>): ReadonlyArray<string> {
    const unreadable = [...this.#unreadable].flatMap(([tenant, ids]) =>
      [...ids].map((id) => endpointKey(tenant, id))
    )
    return [...this.#rows.keys(), ...unreadable].filter((key) => !seen.has(key))
  }

  #drop(key: string): void {
    this.#version++
    const [tenant = "", id = ""] = key.split(".")
    this.#unreadable.get(tenant)?.delete(id)
    const row = this.#rows.get(key)
    if (row === undefined) return
    this.#rows.delete(key)
    this.#givenUp.delete(key)
    this.#ready.delete(key)
    this.#indexes.get(tenant)?.remove(filtersOf(row), row)
    const rows = this.#tenants.get(tenant)
    rows?.delete(row)
    if (rows?.size === 0) this.#tenants.delete(tenant)
  }

  #makeReady(key: string): LiveEndpoint | undefined {
    const row = this.#rows.get(key)
    if (row === undefined) return undefined
    const live = makeLive(key, Result.getOrThrow(decodeEndpoint(key, row.text)), row.revision)
    this.#ready.add(key, live)
    return live
  }

  #makeIndex(tenant: string): TypeIndex<Row> | undefined {
    const rows = this.#tenants.get(tenant)
    if (rows === undefined) return undefined
    const index = new TypeIndex<Row>()
    for (const row of rows) index.add(filtersOf(row), row)
    this.#indexes.add(tenant, index)
    return index
  }
}

const filtersOf = ({ types }: Row): ReadonlyArray<string> => types.split(" ")
