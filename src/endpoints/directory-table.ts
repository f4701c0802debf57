import { Result } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import { endpointKey, isHeldBack } from "../domain/endpoint.ts"
import type { TenantSettings } from "../domain/settings/tenant-table.ts"
import { isSettingsKey, systemKey } from "../domain/settings/tenant-table.ts"
import { TypeIndex } from "../domain/type-filter.ts"
import { HostIndex } from "./host-index.ts"
import type { SettingsInForce } from "./inherited-settings.ts"
import { SettingsTable } from "./inherited-settings.ts"
import type { LiveEndpoint } from "./live-endpoint.ts"
import { makeLive, type Windows, windowsOf } from "./live-endpoint.ts"
import { Recent } from "./recent.ts"
import { decodeEndpoint } from "./stored-values.ts"
import type { ShownValue } from "./watch-lag.ts"

/** What of an endpoint is known without decoding its configuration. */
export interface EndpointOutline {
  readonly generation: string
  readonly revision: number
  readonly isDisabled: boolean
  /** Paused or suspended. */
  readonly isHeldBack: boolean
}

/** The part of an endpoint that routing needs. */
export interface RoutableEndpoint extends Omit<EndpointOutline, "isHeldBack">, Windows {
  readonly id: string
  /** Key of its configuration in the bucket. */
  readonly key: string
}

/**
 * A row keeps the configuration as text: decoded and made ready, it takes several times the memory.
 */
interface Row extends EndpointOutline, RoutableEndpoint {
  /** Type filters, separated by spaces. */
  readonly types: string
  /** The configuration as the bucket holds it; it is known to decode. */
  readonly text: string
  /** Headers of the publisher that it names itself; undefined for none. */
  readonly forwards: ReadonlyArray<string> | undefined
}

/** Maximum number of cached live endpoints: 2 KB each, and 20 µs to make one again. */
const maxReadyEndpoints = 10_000
/**
 * Maximum number of tenants with a cached type index: 1 KB each at least, and 1 µs per endpoint to
 * build one again.
 */
const maxIndexedTenants = 10_000
/**
 * Maximum number of remembered removals: of endpoints that were removed before, the leader is asked.
 */
const maxRememberedRemovals = 10_000

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
  /**
   * Revisions of removals. A tenant may add and remove endpoints for ever, so only the latest are
   * kept.
   */
  readonly #removed = new Recent<number>(maxRememberedRemovals)
  /** Ids of endpoints without any readable configuration so far, by tenant. */
  readonly #unreadable = new Map<string, Set<string>>()
  #ready = new Recent<LiveEndpoint>(maxReadyEndpoints)
  readonly #indexes = new Recent<TypeIndex<Row>>(maxIndexedTenants)

  readonly #settings = new SettingsTable()
  /**
   * Headers of the publisher that endpoints name themselves, by tenant, and how many endpoints do:
   * routing asks for each event type, and a walk over thousands of endpoints takes too long for that.
   */
  readonly #forwarding = new Map<string, Map<string, number>>()
  /** The endpoints of hosts whose requests are capped. */
  readonly hosts = new HostIndex()

  #version = 0

  /** Changes whenever an endpoint or settings change. */
  get version(): number {
    return this.#version
  }

  find(key: string): LiveEndpoint | undefined {
    return this.#ready.get(key) ?? this.#makeReady(key)
  }

  /** Returns what is known of an endpoint at the cost of one look-up, also where `find` decodes it. */
  outline(key: string): EndpointOutline | undefined {
    return this.#rows.get(key)
  }

  /** Returns 0 for an unknown key. */
  revisionOf(key: string): number {
    if (isSettingsKey(key)) return this.#settings.shown(key).revision
    return this.#rows.get(key)?.revision ?? this.#removed.get(key) ?? 0
  }

  /**
   * Returns the last known value of a key, as the bucket would show it; revision 0 for an unknown
   * key.
   */
  shown(key: string): ShownValue {
    if (isSettingsKey(key)) return this.#settings.shown(key)
    return { revision: this.revisionOf(key), text: this.#rows.get(key)?.text }
  }

  /** True where the endpoint is there, readable or not. */
  isPresent(key: string): boolean {
    return this.#rows.has(key) || this.isUnreadable(key)
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

  /**
   * Returns the names of the publisher's headers that any endpoint of the tenant gets, in lower
   * case: those of its tenant first. Undefined for none.
   */
  forwardable(tenant: string): ReadonlyArray<string> | undefined {
    const settings = this.#settings.of(tenant)
    const counts = this.#forwarding.get(tenant)
    if (settings === undefined && counts === undefined) return undefined
    const own = [...(counts?.keys() ?? [])].sort()
    const { forwardHeaders: ofTenant = [] } = settings?.tenant ?? {}
    const { forwardHeaders: ofSystem = [] } = settings?.system ?? {}
    const names = new Set([...ofTenant, ...ofSystem, ...own])
    return names.size === 0 ? undefined : [...names]
  }

  /** Returns the settings that hold for a tenant's endpoints; undefined for none. */
  settingsOf(tenant: string): SettingsInForce | undefined {
    return this.#settings.of(tenant)
  }

  /** Number of tenants that have endpoints. */
  get tenantCount(): number {
    return this.#tenants.size
  }

  get tenants(): Iterable<string> {
    return this.#tenants.keys()
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
      forwards: config.forwardHeaders,
      generation,
      revision,
      isDisabled: config.disabled !== undefined,
      isHeldBack: isHeldBack(config),
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
    this.hosts.add(row)
    this.#countForwards(tenant, row, 1)
  }

  /** @param text the text that `settings` were decoded from. */
  putSettings(key: string, settings: TenantSettings, text: string, revision: number): void {
    this.#settings.put(key, settings, text, revision)
    this.#applySettings(key)
  }

  remove(key: string, revision: number): void {
    if (isSettingsKey(key)) {
      this.#settings.remove(key, revision)
      this.#applySettings(key)
      return
    }
    this.#drop(key)
    this.#removed.add(key, revision)
  }

  /** Returns the known keys that a complete reading did not show. */
  absent(seen: ReadonlySet<string>): ReadonlyArray<string> {
    const unreadable = [...this.#unreadable].flatMap(([tenant, ids]) =>
      [...ids].map((id) => endpointKey(tenant, id))
    )
    const known = [...this.#rows.keys(), ...this.#settings.keys(), ...unreadable]
    return known.filter((key) => !seen.has(key))
  }

  #drop(key: string): void {
    this.#version++
    const [tenant = "", id = ""] = key.split(".")
    const unreadable = this.#unreadable.get(tenant)
    unreadable?.delete(id)
    if (unreadable?.size === 0) this.#unreadable.delete(tenant)
    const row = this.#rows.get(key)
    if (row === undefined) return
    this.#rows.delete(key)
    this.#givenUp.delete(key)
    this.#ready.delete(key)
    this.#indexes.get(tenant)?.remove(filtersOf(row), row)
    this.hosts.remove(row)
    this.#countForwards(tenant, row, -1)
    const rows = this.#tenants.get(tenant)
    rows?.delete(row)
    if (rows?.size === 0) this.#tenants.delete(tenant)
  }

  #countForwards(tenant: string, { forwards }: Row, change: 1 | -1): void {
    if (forwards === undefined) return
    const counts = this.#forwarding.get(tenant) ?? new Map<string, number>()
    for (const name of forwards) {
      const count = (counts.get(name) ?? 0) + change
      if (count > 0) counts.set(name, count)
      else counts.delete(name)
    }
    if (counts.size > 0) this.#forwarding.set(tenant, counts)
    else this.#forwarding.delete(tenant)
  }

  #makeReady(key: string): LiveEndpoint | undefined {
    const row = this.#rows.get(key)
    if (row === undefined) return undefined
    const config = Result.getOrThrow(decodeEndpoint(key, row.text))
    const live = makeLive(key, config, row.revision, this.#settings.of(config.tenant))
    this.#ready.add(key, live)
    return live
  }

  /** What was made with the former settings is made anew on use. */
  #applySettings(key: string): void {
    this.#version++
    this.#ready = new Recent(maxReadyEndpoints)
    const isSystem = key === systemKey
    const whose = isSystem ? undefined : key
    const rows = isSystem ? this.#rows.values() : (this.#tenants.get(key) ?? [])
    if (this.#settings.isCapped(key)) this.hosts.cap(whose, rows)
    else this.hosts.uncap(whose)
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
