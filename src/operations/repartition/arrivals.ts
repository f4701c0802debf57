import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { scanQueue } from "../../broker/scan.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { identifyDelivery, parseDelivery, roundKey } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"

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

const placeOf = (stream: string, { seq, time }: StoredMsg): Place => ({
  stream,
  seq,
  at: time.getTime()
})

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
    const { names } = yield* Broker
    const stream = names.deliveries(partition)
    const found = new Map<string, Map<string, Place>>()
    yield* Stream.runForEach(scanQueue(stream, names.subjects.schedulesOf(partition)), (message) =>
      Effect.sync(() => {
        const delivery = namedIn(message)
        if (delivery === undefined) return
        const key = endpointKey(delivery.tenant, delivery.endpoint)
        const own = found.get(key) ?? new Map<string, Place>()
        own.set(roundKey(delivery), placeOf(stream, message))
        found.set(key, own)
      })
    )
    return found
  })

  const read = Effect.fnUntraced(function* (
    partition: number,
    { endpoint, tenant }: Pick<Delivery, "tenant" | "endpoint">,
    scheduled: Effect.Effect<ReadonlyMap<string, Arrived>, BrokerError, Broker>
  ) {
    const { names } = yield* Broker
    const found = new Map<string, Place>()
    // In the order in which a schedule moves, so that one that fires meanwhile is seen at least once.
    for (const [identity, place] of (yield* scheduled).get(endpointKey(tenant, endpoint)) ??
      nothing)
      found.set(identity, place)
    const places = [
      [names.deliveries(partition), names.subjects.delivery(partition, tenant, endpoint)],
      [names.backlog(partition), names.subjects.backlog(partition, tenant, endpoint)]
    ] as const
    for (const [stream, subject] of places)
      yield* Stream.runForEach(scanQueue(stream, subject), (message) =>
        Effect.sync(() => {
          const delivery = namedIn(message)
          if (delivery !== undefined) found.set(roundKey(delivery), placeOf(stream, message))
        })
      )
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
