import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { identifyDelivery, parseDelivery } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"

/** An endpoint's deliveries that are in its new partition already, by their `roundKey`. */
export type Arrived = ReadonlyMap<string, Place>

/** Returns the subject of a delivery: for a schedule, its target. */
export const targetOf = ({ header, subject }: StoredMsg): string =>
  header.get("Nats-Schedule-Target") || subject

/** Parses the delivery of a message or a schedule; undefined if it is none. */
export const deliveryOf = (message: StoredMsg): Delivery | undefined =>
  parseDelivery(targetOf(message), (name) => message.header.get(name) || undefined)

/** Returns the identity of a message's delivery, even if the rest of it is unreadable. */
export const namedIn = (message: StoredMsg) =>
  deliveryOf(message) ??
  identifyDelivery(targetOf(message), (name) => message.header.get(name) || undefined)

/** Looks up what has been moved already. */
export interface Arrivals {
  /** The deliveries of one endpoint, as of the first call for it. */
  readonly of: (
    partition: number,
    endpoint: Pick<Delivery, "tenant" | "endpoint">
  ) => Effect.Effect<Arrived, BrokerError, Broker>
  /** The same as of now, for a message whose acknowledgement is missing. */
  readonly now: Arrivals["of"]
}

const nothing: Arrived = new Map()

/**
 * Looks up what an earlier run has moved, by event and round: a schedule that has fired keeps
 * nothing else of its origin. While no worker runs, nothing leaves the new partition.
 *
 * @param mayHave false if nothing can have been moved: then nothing is read.
 */
export const makeArrivals = (mayHave: boolean): Arrivals => {
  const schedules = new Map<
    number,
    Effect.Effect<ReadonlyMap<string, Arrived>, BrokerError, Broker>
  >()
  const endpoints = new Map<string, Effect.Effect<Arrived, BrokerError, Broker>>()

  const readSchedules = Effect.fnUntraced(function* (partition: number) {
    const found = new Map<string, Map<string, Place>>()
    yield* locate(
      { within: { partition }, endpoints: "all", places: ["schedules"] },
      (sighting) => {
        if (sighting.where === "history") return false
        const key = endpointKey(sighting.tenant, sighting.endpoint)
        const own = found.get(key) ?? new Map<string, Place>()
        own.set(roundKeyOf(sighting), sighting.place)
        found.set(key, own)
        return false
      }
    )
    return found
  })

  const read = Effect.fnUntraced(function* (
    partition: number,
    { endpoint, tenant }: Pick<Delivery, "tenant" | "endpoint">,
    scheduled: Effect.Effect<ReadonlyMap<string, Arrived>, BrokerError, Broker>
  ) {
    // In the order in which a schedule moves, so that one that fires meanwhile is seen at least once.
    const found = new Map((yield* scheduled).get(endpointKey(tenant, endpoint)) ?? nothing)
    const endpoints = [{ tenant, endpoint }]
    const places = ["queue", "backlog"] as const
    yield* locate({ within: { partition }, endpoints, places }, (sighting) => {
      if (sighting.where !== "history") found.set(roundKeyOf(sighting), sighting.place)
      return false
    })
    const arrived: Arrived = found
    return arrived
  })

  return {
    of: Effect.fnUntraced(function* (partition, endpoint) {
      if (!mayHave) return nothing
      const key = endpointKey(endpoint.tenant, endpoint.endpoint)
      let known = endpoints.get(key)
      if (known === undefined) {
        const scheduled =
          schedules.get(partition) ?? (yield* Effect.cached(readSchedules(partition)))
        schedules.set(partition, scheduled)
        known = yield* Effect.cached(read(partition, endpoint, scheduled))
        endpoints.set(key, known)
      }
      return yield* known
    }),
    now: (partition, endpoint) => read(partition, endpoint, readSchedules(partition))
  }
}
