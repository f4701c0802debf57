import { Effect } from "effect"
import { keepGoing } from "../broker/keep-going.ts"
import type { AlertChoice } from "../domain/alert.ts"
import type { AlertThresholds } from "../policy/alert-thresholds.ts"
import { defaultThresholds, withSettings } from "../policy/alert-thresholds.ts"
import type { StoredThresholds } from "./alert-store.ts"
import { readThresholds } from "./alert-store.ts"

/** The thresholds that a worker judges by. */
export interface Thresholds {
  readonly system: () => AlertThresholds
  readonly tenant: (tenant: string) => AlertThresholds
  /** The tenant whose operational endpoints get the alerts about the system. */
  readonly systemAlertsTo: () => string | undefined
  /** Contact of a tenant, and of its endpoints without a contact of their own. */
  readonly contact: (tenant: string) => string | undefined
  /** @param choice the endpoint's own; the same object gives the same thresholds at no cost. */
  readonly endpoint: (tenant: string, choice: AlertChoice | undefined) => AlertThresholds
}

/** Thresholds from what was set. */
export const thresholdsFrom = (stored: StoredThresholds): Thresholds => {
  const { systemAlertsTo, ...ofSystem } = stored.system ?? {}
  const system = withSettings(defaultThresholds, ofSystem)
  const tenants = new Map<string, AlertThresholds>()
  const contacts = new Map<string, string>()
  for (const [tenant, choice] of stored.tenants) {
    const { contact, ...settings } = choice === "off" ? {} : choice
    tenants.set(tenant, withSettings(system, choice === "off" ? choice : settings))
    if (contact !== undefined) contacts.set(tenant, contact)
  }
  const own = new WeakMap<object, AlertThresholds>()
  const off = new Map<AlertThresholds, AlertThresholds>()
  const ofTenant = (tenant: string) => tenants.get(tenant) ?? system
  return {
    system: () => system,
    systemAlertsTo: () => systemAlertsTo,
    tenant: ofTenant,
    contact: (tenant) => contacts.get(tenant),
    endpoint: (tenant, choice) => {
      if (choice === undefined) return ofTenant(tenant)
      if (choice === "off") {
        const under = ofTenant(tenant)
        const known = off.get(under) ?? withSettings(under, choice)
        off.set(under, known)
        return known
      }
      const known = own.get(choice)
      if (known !== undefined) return known
      const made = withSettings(ofTenant(tenant), choice)
      own.set(choice, made)
      return made
    }
  }
}

/**
 * Reads the thresholds of tenants and the system at an interval (ms), for as long as the scope
 * lives. If a read fails, the thresholds of the last read stay in force.
 */
export const watchThresholds = Effect.fnUntraced(function* (every: number) {
  let now = thresholdsFrom({ system: undefined, tenants: new Map() })
  const read = readThresholds.pipe(
    Effect.tap((stored) =>
      Effect.sync(() => {
        now = thresholdsFrom(stored)
      })
    ),
    Effect.catch((error) =>
      Effect.logDebug("cannot read the thresholds of alerts", { why: error.message })
    )
  )
  yield* read
  const again = Effect.andThen(Effect.sleep(every), read)
  yield* Effect.forkScoped(keepGoing("read the thresholds of alerts", again, every))
  return {
    system: () => now.system(),
    systemAlertsTo: () => now.systemAlertsTo(),
    tenant: (tenant) => now.tenant(tenant),
    contact: (tenant) => now.contact(tenant),
    endpoint: (tenant, choice) => now.endpoint(tenant, choice)
  } satisfies Thresholds
})
