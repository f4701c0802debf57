import { Duration, Effect, Schema } from "effect"
import type { StoredThresholds } from "../../alerts/alert-store.ts"
import {
  readThresholdsOf,
  storeSystemThresholds,
  storeTenantThresholds
} from "../../alerts/alert-store.ts"
import { thresholdsFrom } from "../../alerts/thresholds.ts"
import { AlertSettings, SystemAlertSettings, type TenantAlertChoice } from "../../domain/alert.ts"
import type { AlertThresholds } from "../../policy/alert-thresholds.ts"
import { durationText } from "../text/time.ts"

/** When alerts are raised about a tenant and its endpoints, or about the system and all others. */
export const ThresholdsView = Schema.Struct({
  /** Absent for the system. */
  tenant: Schema.optionalKey(Schema.String),
  /** `off` and `on` for an alert as a whole; durations in words. */
  thresholds: Schema.Record(Schema.String, Schema.Union([Schema.Number, Schema.String])),
  contact: Schema.optionalKey(Schema.String),
  /** The tenant whose operational endpoints get the alerts about the system. */
  systemAlertsTo: Schema.optionalKey(Schema.String),
  /** The names of those that were set here. */
  set: Schema.Array(Schema.String),
  /** All alerts about the tenant and its endpoints were turned off. */
  off: Schema.optionalKey(Schema.Literal(true))
})
export type ThresholdsView = typeof ThresholdsView.Type

const times: ReadonlySet<string> = new Set(["medianTime", "p99Time", "unroutedTime", "window"])
const toggles: ReadonlySet<string> = new Set([
  "circuitOpened",
  "endpointDisabled",
  "endpointSuspended",
  "statusInARow",
  "deliveriesMissing",
  "diskFailed"
])

const shownValue = (name: string, value: number | undefined): number | string => {
  if (value === undefined) return "off"
  if (toggles.has(name)) return "on"
  return times.has(name) ? durationText(Duration.millis(value)) : value
}

const shown = (thresholds: AlertThresholds, fields: ReadonlyArray<string>) => {
  const values = new Map(Object.entries(thresholds))
  return Object.fromEntries(fields.map((name) => [name, shownValue(name, values.get(name))]))
}

/** Returns the thresholds of a tenant, or those of the system. */
export const thresholdsView = (
  stored: StoredThresholds,
  tenant: string | undefined
): ThresholdsView => {
  const thresholds = thresholdsFrom(stored)
  const systemAlertsTo = thresholds.systemAlertsTo()
  const { systemAlertsTo: _, ...fields } = SystemAlertSettings.fields
  if (tenant === undefined)
    return {
      thresholds: shown(thresholds.system(), Object.keys(fields)),
      ...(systemAlertsTo === undefined ? {} : { systemAlertsTo }),
      set: Object.keys(stored.system ?? {})
    }
  const own = stored.tenants.get(tenant)
  const contact = thresholds.contact(tenant)
  return {
    tenant,
    thresholds: shown(thresholds.tenant(tenant), Object.keys(AlertSettings.fields)),
    ...(contact === undefined ? {} : { contact }),
    set: typeof own === "object" ? Object.keys(own) : [],
    ...(own === "off" ? { off: true } : {})
  }
}

/** Shows when alerts are raised about a tenant and its endpoints, or about the system. */
export const showThresholds = (tenant?: string) =>
  Effect.map(readThresholdsOf(tenant), (stored) => thresholdsView(stored, tenant))

/**
 * Replaces what was set for a tenant.
 *
 * @param choice undefined removes it.
 */
export const setTenantThresholds = (tenant: string, choice: TenantAlertChoice | undefined) =>
  Effect.andThen(storeTenantThresholds(tenant, choice), showThresholds(tenant))

/**
 * Replaces what was set for the system and for all tenants without thresholds of their own.
 *
 * @param settings undefined removes it.
 */
export const setSystemThresholds = (settings: SystemAlertSettings | undefined) =>
  Effect.andThen(storeSystemThresholds(settings), showThresholds())
