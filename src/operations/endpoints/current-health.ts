import { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { Endpoint } from "../../domain/endpoint.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Health } from "../../domain/health.ts"
import { healthy } from "../../domain/health.ts"
import { listHealth } from "../../endpoints/health-record.ts"
import { readHealth } from "../../endpoints/health-store.ts"

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
export const healthOfAll = Effect.map(listHealth, (stored) => {
  const known = new Map(stored.map(({ health, key }) => [key, health]))
  return ({ generation, id, tenant }: Endpoint): Health =>
    ofGeneration(generation, known.get(endpointKey(tenant, id)))
})
