import { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { Endpoint } from "../../domain/endpoint.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Health } from "../../domain/health.ts"
import { healthy } from "../../domain/health.ts"
import { listHealth } from "../../endpoints/health-record.ts"
import { readHealth } from "../../endpoints/health-store.ts"

/**
 * Reads an endpoint's health from the leader. The health of an earlier endpoint of the same name is
 * ignored. An unreadable value is ignored with a warning.
 */
export const healthOf = ({
  generation,
  id,
  tenant
}: Endpoint): Effect.Effect<Health, BrokerError, Broker> =>
  readHealth(tenant, id).pipe(
    Effect.map(({ health }) => (health?.generation === generation ? health : healthy(generation))),
    Effect.catchTag("HealthUnreadable", ({ message }) =>
      Effect.as(Effect.logWarning(message), healthy(generation))
    )
  )

/**
 * Reads the health of all endpoints in one scan. The health of an earlier endpoint of the same name
 * is ignored.
 */
export const healthOfAll = Effect.map(listHealth, (stored) => {
  const known = new Map(stored.map(({ health, key }) => [key, health]))
  return ({ generation, id, tenant }: Endpoint): Health => {
    const health = known.get(endpointKey(tenant, id))
    return health?.generation === generation ? health : healthy(generation)
  }
})
