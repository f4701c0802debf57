import type { Endpoint } from "../domain/endpoint.ts"
import { defaultMaxTimeoutMs, timeoutBoundMs } from "../domain/timeout-bound.ts"
import { hostOf } from "./host-index.ts"
import type { SettingsInForce } from "./settings-table.ts"

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
