import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Stream } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { scanQueue } from "../../broker/scan.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { identifyDelivery, parseDelivery, roundKey } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"

/** An endpoint's deliveries that lie in its new partition, by their `roundKey`. */
export type Arrived = ReadonlyMap<string, Place>

/** The subject that a message is about: its own or, of a schedule, that of what it becomes. */
export const targetOf = ({ header, subject }: StoredMsg): string =>
  header.get("Nats-Schedule-Target") || subject

/** The delivery in a message, waiting as a schedule or not; undefined where it is none. */
export const deliveryOf = (message: StoredMsg): Delivery | undefined =>
  parseDelivery(targetOf(message), (name) => message.header.get(name) || undefined)

/** Which delivery a message is, also where it cannot be read as a whole; undefined where nothing says. */
export const namedIn = (message: StoredMsg) =>
  deliveryOf(message) ??
  identifyDelivery(targetOf(message), (name) => message.header.get(name) || undefined)

/** Tells what has been moved already. */
export interface Arrivals {
  /** Of one endpoint, as it was when this was asked first. */
  readonly of: (
    partition: number,
    endpoint: Pick<Delivery, "tenant" | "endpoint">
  ) => Effect.Effect<Arrived, BrokerError, Broker>
  /** The same as it is now: for a message whose acknowledgement is missing. */
  readonly now: Arrivals["of"]
}

const nothing: Arrived = new Map()

const placeOf = (stream: string, { seq, time }: StoredMsg): Place => ({
  stream,
  seq,
  at: time.getTime()
})

/**
 * Looks for what an earlier run has moved. By event and round, since a schedule that has fired
 * meanwhile tells nothing else of where it came from. Nobody takes anything from there while no
 * worker runs.
 *
 * @param mayHave false where nothing can have been moved: then it does not look.
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
    // In the order in which a schedule goes: one that fires meanwhile is seen at least once.
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
