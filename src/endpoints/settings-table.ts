import type { TenantSettings } from "../domain/tenant-settings.ts"
import { systemKey } from "../domain/tenant-settings.ts"
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
