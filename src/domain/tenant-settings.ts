import { Schema } from "effect"
import { column } from "./settings/setting.ts"
import { tenantSettings } from "./settings/tenant-table.ts"
import { Timestamp } from "./timestamp.ts"
import { isToken, nobody } from "./token.ts"

/**
 * What holds for all endpoints of a tenant together, or of the system: the value under the tenant's
 * name, or `_` for the system, in the endpoints bucket.
 */
export const TenantSettings = Schema.Struct({
  v: Schema.Literal(1),
  ...column(tenantSettings, "stored"),
  updatedAt: Timestamp
})
export type TenantSettings = typeof TenantSettings.Type

/** The key of the system's settings. No tenant has this name. */
export const systemKey = nobody

/** Returns true if a key of the endpoints bucket is one of settings. */
export const isSettingsKey = (key: string): boolean => key === systemKey || isToken(key)

/** One change of settings, as the history records it. */
export const SettingsChange = Schema.Struct({
  /** The revision in the endpoints bucket. */
  revision: Schema.Int,
  /** The settings after the change: each that is set. */
  now: Schema.Struct(column(tenantSettings, "told"))
})
export type SettingsChange = typeof SettingsChange.Type
