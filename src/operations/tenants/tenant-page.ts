import { Effect } from "effect"
import { listEndpointKeys } from "../../endpoints/endpoint-store.ts"

/** A tenant, and how many endpoints it has. */
export interface TenantEntry {
  readonly tenant: string
  readonly endpoints: number
}

/** Tenants in the order of their names, and the name after which the next page begins. */
export interface TenantPage {
  readonly tenants: ReadonlyArray<TenantEntry>
  readonly next: string | undefined
}

/**
 * Reads a page of the tenants that have endpoints.
 *
 * @param after the name after which it begins.
 */
export const pageTenants = Effect.fnUntraced(function* (after: string | undefined, limit: number) {
  const counts = new Map<string, number>()
  for (const key of yield* listEndpointKeys()) {
    const [tenant = ""] = key.split(".")
    counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
  }
  const left = [...counts]
    .map(([tenant, endpoints]) => ({ tenant, endpoints }))
    .filter(({ tenant }) => after === undefined || tenant > after)
    .toSorted((a, b) => (a.tenant < b.tenant ? -1 : 1))
  const tenants = left.slice(0, limit)
  return {
    tenants,
    next: left.length > limit ? tenants.at(-1)?.tenant : undefined
  } satisfies TenantPage
})
