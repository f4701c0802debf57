import { Duration, Effect, Result } from "effect"
import { readRaised } from "../../alerts/alert-store.ts"
import { readAllNow, readEndpointNow } from "../../delivery/introspection/endpoint-activity.ts"
import type { Endpoint } from "../../domain/endpoint.ts"
import { getEndpoint, listEndpoints as listStored } from "../../endpoints/endpoint-store.ts"
import type { SharedHost } from "../../endpoints/inherited-settings.ts"
import { forwardedTo, maxTimeoutMsOf, sharedHostOf } from "../../endpoints/inherited-settings.ts"
import { readSettingsInForce } from "../../endpoints/settings-store.ts"
import { attemptTimeoutMs, connectTimeoutMs } from "../../policy/attempt-timeout.ts"
import { policiesOf } from "../../policy/endpoint-policies.ts"
import { activityView } from "./activity-view.ts"
import { healthOf, healthOfAll } from "./current-health.ts"
import type { EndpointName } from "./endpoint-settings.ts"
import type { EndpointDetail, ListedEndpoint } from "./endpoint-view.ts"
import { endpointHealthView } from "./endpoint-view.ts"

/** Lists all endpoints, or a tenant's, in the order of their names. */
export const listEndpoints = Effect.fnUntraced(function* (tenant?: string) {
  const { activity, health, stored } = yield* Effect.all(
    { stored: listStored(tenant), health: healthOfAll, activity: readAllNow(tenant) },
    { concurrency: "unbounded" }
  )
  return stored.flatMap((one): ReadonlyArray<ListedEndpoint> => {
    const { endpoint } = one
    // Every endpoint has a partition, so that there is an activity.
    const now = activity(endpoint.tenant, endpoint.id)
    if (now === undefined) return []
    return [{ ...endpointHealthView(one, health(endpoint)), ...activityView(now) }]
  })
})

/** Shows what waits for an endpoint now, and what it does; also of one whose settings are damaged. */
export const showActivity = ({ id, tenant }: EndpointName) =>
  Effect.map(readEndpointNow(tenant, id), activityView)

const hostView = ({ host, systemCap, tenantCap }: SharedHost) => ({
  host,
  ...(tenantCap === undefined ? {} : { tenantCap }),
  ...(systemCap === undefined ? {} : { systemCap })
})

/** Returns to what time-outs of an endpoint are cut, if one is longer. */
const cutTimeouts = (endpoint: Endpoint, mostMs: number) =>
  Result.getOrElse(policiesOf(endpoint), () => []).some(
    ({ policy }) =>
      attemptTimeoutMs(endpoint, policy) > mostMs || connectTimeoutMs(endpoint, policy) > mostMs
  )
    ? { timeoutsCutTo: Duration.millis(mostMs) }
    : {}

/**
 * Shows one endpoint.
 *
 * @param reveal shows its secrets and the values of its headers.
 */
export const showEndpoint = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  { reveal = false }: { readonly reveal?: boolean } = {}
) {
  const stored = yield* getEndpoint(tenant, id)
  const health = yield* healthOf(stored.endpoint)
  const raised = yield* readRaised({ tenant, endpoint: id })
  const settings = yield* readSettingsInForce(tenant)
  const shared = sharedHostOf(stored.endpoint, settings)
  return {
    ...endpointHealthView(stored, health, reveal),
    forwards: forwardedTo(stored.endpoint, settings),
    ...(shared === undefined ? {} : { sharedHost: hostView(shared) }),
    ...cutTimeouts(stored.endpoint, maxTimeoutMsOf(settings)),
    ...(yield* showActivity({ id, tenant })),
    raised
  } satisfies EndpointDetail
})
