import { Effect } from "effect"
import type { TenantCount } from "../../endpoints/endpoint-keys.ts"
import { EndpointKeys } from "../../endpoints/endpoint-keys.ts"

/** Tenants in the order of their names, and the name after which the next page begins. */
export interface TenantPage {
  readonly tenants: ReadonlyArray<TenantCount>
  readonly next: string | undefined
}

/**
 * Reads a page of the tenants that have endpoints.
 *
 * @param after the name after which it begins.
 */
export const pageTenants = Effect.fnUntraced(function* (after: string | undefined, limit: number) {
  const { current } = yield* EndpointKeys
  const found = current().tenants(after, limit + 1)
  const tenants = found.slice(0, limit)
  return {
    tenants,
    next: found.length > limit ? tenants.at(-1)?.tenant : undefined
  } satisfies TenantPage
})
