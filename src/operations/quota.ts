import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { readStream } from "../broker/scan.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { defaultQuotas, type QuotaName, systemKey } from "../domain/settings/tenant-table.ts"
import { isToken } from "../domain/token.ts"
import { EndpointKeys } from "../endpoints/endpoint-keys.ts"
import { readSettingsInForce } from "../endpoints/settings-store.ts"
import { RefusedRequests } from "../metrics/refused-requests.ts"
import { QuotaReached } from "./refusals.ts"

/** Reads how many of something a tenant may have: what is set for it, or for the system, or by default. */
export const quotaOf = Effect.fnUntraced(function* (tenant: string, quota: QuotaName) {
  // All tenants together have no settings of their own.
  const { system, tenant: own } = yield* readSettingsInForce(isToken(tenant) ? tenant : systemKey)
  return own?.[quota] ?? system?.[quota] ?? defaultQuotas[quota]
})

/** Refuses one more, and counts that. */
export const quotaReached = (tenant: string, quota: QuotaName, most: number, ofBrowsers = false) =>
  Effect.flatMap(RefusedRequests, (refused) => {
    refused.note(quota)
    return Effect.fail(
      new QuotaReached({ tenant, quota, most, ...(ofBrowsers ? { ofBrowsers } : {}) })
    )
  })

/** Counts a tenant's endpoints in their bucket: who adds one from the command line follows no keys. */
const countEndpoints = Effect.fnUntraced(function* (tenant: string) {
  const { names } = yield* Broker
  const subjects = [`$KV.${names.buckets.endpoints}.${tenant}.*`]
  const keys = new Set<string>()
  yield* readStream({
    stream: `KV_${names.buckets.endpoints}`,
    subjects,
    headersOnly: true
  }).pipe(
    Stream.runForEach(({ headers, subject }) =>
      Effect.sync(() => {
        if (headers?.has("KV-Operation") !== true) keys.add(subject)
      })
    )
  )
  return keys.size
})

/**
 * Adds an endpoint if its tenant may have one more. Fails with QuotaReached otherwise. Those that
 * one console adds at the same time count; several consoles pass the number by what they add within
 * the same few ms.
 */
export const withinQuota = Effect.fnUntraced(function* <A, E, R>(
  { id, tenant }: { readonly id: string; readonly tenant: string },
  add: Effect.Effect<A, E, R>
) {
  const most = yield* quotaOf(tenant, "maxEndpoints")
  const known = Option.getOrUndefined(yield* Effect.serviceOption(EndpointKeys))
  if (known === undefined) {
    if ((yield* countEndpoints(tenant)) >= most)
      return yield* quotaReached(tenant, "maxEndpoints", most)
    return yield* add
  }
  const { current, reservations } = known
  const key = endpointKey(tenant, id)
  const keys = current()
  // One that is there takes no place: it is not added again.
  if (
    !keys.has(key) &&
    !reservations.take(tenant, key, most, keys.count(tenant), (one) => keys.has(one))
  )
    return yield* quotaReached(tenant, "maxEndpoints", most)
  return yield* Effect.onError(add, () => Effect.sync(() => reservations.give(tenant, key)))
})
