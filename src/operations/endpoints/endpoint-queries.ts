import { Clock, Duration, Effect, Random, Result } from "effect"
import { readRaised } from "../../alerts/alert-store.ts"
import type { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { readUser } from "../../broker/user.ts"
import { readAllNow, readEndpointNow } from "../../delivery/introspection/endpoint-activity.ts"
import type { EndpointName } from "../../domain/endpoint.ts"
import { type Endpoint, endpointKey } from "../../domain/endpoint.ts"
import type { Fact } from "../../domain/fact.ts"
import { type Health, healthy } from "../../domain/health.ts"
import { present } from "../../domain/record.ts"
import { getEndpoint, listEndpoints as listStored } from "../../endpoints/endpoint-store.ts"
import { listHealth, readHealth } from "../../endpoints/health-store.ts"
import {
  forwardedTo,
  maxTimeoutMsOf,
  type SharedHost,
  sharedHostOf
} from "../../endpoints/inherited-settings.ts"
import { readSettingsInForce } from "../../endpoints/settings-store.ts"
import { appendFact } from "../../history/facts.ts"
import { attemptTimeoutMs, connectTimeoutMs } from "../../policy/attempt-timeout.ts"
import { policiesOf } from "../../policy/endpoint-policies.ts"
import {
  activityView,
  type EndpointDetail,
  endpointHealthView,
  endpointView,
  type ListedEndpoint
} from "./endpoint-view.ts"

const ofGeneration = (generation: string, health: Health | undefined): Health =>
  health?.generation === generation ? health : healthy(generation)

/**
 * Reads the health that is stored under an endpoint's name from the leader, and returns it for the
 * endpoint: that of an earlier endpoint of the same name is ignored. An unreadable value is ignored
 * with a warning.
 */
export const readHealthUnder = (tenant: string, id: string) =>
  readHealth(tenant, id).pipe(
    Effect.map(({ health }) => health),
    Effect.catchTag("HealthUnreadable", ({ message }) =>
      Effect.as(Effect.logWarning(message), undefined)
    ),
    Effect.map(
      (health) =>
        ({ generation }: Endpoint) =>
          ofGeneration(generation, health)
    )
  )

/** Reads an endpoint's health, as {@link readHealthUnder} its name. */
export const healthOf = (endpoint: Endpoint): Effect.Effect<Health, BrokerError, Broker> =>
  Effect.map(readHealthUnder(endpoint.tenant, endpoint.id), (of) => of(endpoint))

/**
 * Reads the health of all endpoints in one scan. The health of an earlier endpoint of the same name
 * is ignored.
 */
const healthOfAll = Effect.map(listHealth, (stored) => {
  const known = new Map(stored.map(({ health, key }) => [key, health]))
  return ({ generation, id, tenant }: Endpoint): Health =>
    ofGeneration(generation, known.get(endpointKey(tenant, id)))
})

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
  ...present({ tenantCap, systemCap })
})

/** Returns to what time-outs of an endpoint are cut, if one is longer. */
const cutTimeouts = (endpoint: Endpoint, mostMs: number) =>
  Result.getOrElse(policiesOf(endpoint), () => []).some(
    ({ policy }) =>
      attemptTimeoutMs(endpoint, policy) > mostMs || connectTimeoutMs(endpoint, policy) > mostMs
  )
    ? { timeoutsCutTo: Duration.millis(mostMs) }
    : {}

const appendRevealed = Effect.fnUntraced(function* ({ id, tenant }: EndpointName, by: string) {
  const kind = "secrets-revealed"
  const at = yield* Clock.currentTimeMillis
  const user = yield* readUser
  const number = yield* Random.nextIntBetween(0, 2 ** 32)
  const fact: Fact = { v: 1, kind, at, tenant, endpoint: id, by, user }
  yield* appendFact(fact, `${kind}.${tenant}.${id}.${at}.${number}`)
})

/** Shows an endpoint's secrets and the values of its headers, once the history knows who sees them. */
export const revealSecrets = Effect.fnUntraced(function* (name: EndpointName, by: string) {
  const stored = yield* getEndpoint(name.tenant, name.id)
  yield* appendRevealed(name, by)
  const { headers, secrets } = endpointView(stored, true)
  return { headers, secrets }
})

/**
 * Shows one endpoint.
 *
 * @param revealTo who sees its secrets and the values of its headers, once the history knows of it.
 *   (Default: nobody)
 */
export const showEndpoint = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  { revealTo }: { readonly revealTo?: string | undefined } = {}
) {
  const stored = yield* getEndpoint(tenant, id)
  if (revealTo !== undefined) yield* appendRevealed({ id, tenant }, revealTo)
  const { activity, health, raised, settings } = yield* Effect.all(
    {
      activity: showActivity({ id, tenant }),
      health: healthOf(stored.endpoint),
      raised: readRaised({ tenant, endpoint: id }),
      settings: readSettingsInForce(tenant)
    },
    { concurrency: "unbounded" }
  )
  const shared = sharedHostOf(stored.endpoint, settings)
  return {
    ...endpointHealthView(stored, health, revealTo !== undefined),
    forwards: forwardedTo(stored.endpoint, settings),
    ...(shared === undefined ? {} : { sharedHost: hostView(shared) }),
    ...cutTimeouts(stored.endpoint, maxTimeoutMsOf(settings)),
    ...activity,
    raised
  } satisfies EndpointDetail
})
