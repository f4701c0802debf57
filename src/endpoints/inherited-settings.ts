import type { Endpoint } from "../domain/endpoint.ts"
import type { TenantSettings } from "../domain/settings/tenant-table.ts"
import { defaultMaxTimeoutMs, systemKey, timeoutBoundMs } from "../domain/settings/tenant-table.ts"
import { hostOf } from "./host-index.ts"
import type { ShownValue } from "./watch-lag.ts"

interface Row {
  readonly settings: TenantSettings
  readonly text: string
  readonly revision: number
}

/** What of the settings holds for a tenant's endpoints. */
export interface SettingsInForce {
  readonly tenant: TenantSettings | undefined
  readonly system: TenantSettings | undefined
}

/** The settings of tenants and of the system in memory, by their keys. */
export class SettingsTable {
  readonly #rows = new Map<string, Row>()
  readonly #removed = new Map<string, number>()

  /** Returns the last known value of a key; revision 0 for an unknown one. */
  shown(key: string): ShownValue {
    const row = this.#rows.get(key)
    return { revision: row?.revision ?? this.#removed.get(key) ?? 0, text: row?.text }
  }

  keys(): Iterable<string> {
    return this.#rows.keys()
  }

  put(key: string, settings: TenantSettings, text: string, revision: number): void {
    this.#rows.set(key, { settings, text, revision })
    this.#removed.delete(key)
  }

  remove(key: string, revision: number): void {
    this.#rows.delete(key)
    this.#removed.set(key, revision)
  }

  /** Returns what holds for a tenant; undefined where neither it nor the system has settings. */
  of(tenant: string): SettingsInForce | undefined {
    if (this.#rows.size === 0) return undefined
    const own = this.#rows.get(tenant)?.settings
    const system = this.#rows.get(systemKey)?.settings
    return own === undefined && system === undefined ? undefined : { tenant: own, system }
  }

  /** Returns true where the settings under a key cap the requests to one host. */
  isCapped(key: string): boolean {
    return this.#rows.get(key)?.settings.hostCap !== undefined
  }
}

/** The host of an endpoint's URL, where requests to it are capped over several endpoints. */
export interface SharedHost {
  readonly host: string
  readonly tenant: string
  /** Concurrent requests to the host for the tenant's endpoints together. */
  readonly tenantCap: number | undefined
  /** The same for the endpoints of all tenants. */
  readonly systemCap: number | undefined
}

/** Returns what an endpoint's requests share with those of others; undefined for nothing. */
export const sharedHostOf = (
  { tenant, url }: Endpoint,
  settings: SettingsInForce | undefined
): SharedHost | undefined => {
  const tenantCap = settings?.tenant?.hostCap
  const systemCap = settings?.system?.hostCap
  if (tenantCap === undefined && systemCap === undefined) return undefined
  return { host: hostOf(url), tenant, tenantCap, systemCap }
}

/** Returns the longest time-out that a tenant's endpoints may have, ms. */
export const maxTimeoutMsOf = (settings: SettingsInForce | undefined): number => {
  const chosen = settings?.tenant?.maxTimeout ?? settings?.system?.maxTimeout
  return chosen === undefined ? defaultMaxTimeoutMs : timeoutBoundMs(chosen)
}

/**
 * Returns the names of the publisher's headers that an endpoint gets, in lower case: those of its
 * tenant, of the system, and its own. Headers that it sets itself keep their values.
 */
export const forwardedTo = (
  { forwardHeaders = [], headerNames = {}, headers, signatureHeader }: Endpoint,
  settings: SettingsInForce | undefined
): ReadonlyArray<string> => {
  const { system, tenant } = settings ?? {}
  const names = [
    ...(tenant?.forwardHeaders ?? []),
    ...(system?.forwardHeaders ?? []),
    ...forwardHeaders
  ]
  if (names.length === 0) return names
  const sent = [...Object.keys(headers), ...Object.values(headerNames), signatureHeader]
  const own = new Set(sent.map((name) => name?.toLowerCase()))
  return [...new Set(names)].filter((name) => !own.has(name))
}
