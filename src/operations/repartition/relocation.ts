import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { type BrokerError, isNoSuchMessage } from "../../broker/broker-error.ts"
import type { HeaderList } from "../../broker/publication.ts"
import type { DeliveryReference } from "../../domain/backlog-message.ts"
import {
  entryCount,
  isOfLabel,
  originStreams,
  referencesHeader
} from "../../domain/backlog-message.ts"
import {
  type Delivery,
  deliveryHeaders,
  deliveryIn,
  deliverySubject,
  identifyDelivery,
  scheduleHeaders
} from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { type Place, placeName } from "../../domain/fact.ts"
import type { Names } from "../../domain/names.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"

/**
 * Removes one message.
 *
 * @returns false if it was gone already.
 */
export const removeMessage = Effect.fnUntraced(function* (stream: string, seq: number) {
  const { deleteMessage } = yield* Broker
  return yield* deleteMessage("remove a delivery that was moved", stream, seq).pipe(
    Effect.catchIf(isNoSuchMessage, () => Effect.succeed(false))
  )
})

/** A message for another partition. */
export interface Relocation {
  readonly subject: string
  readonly body: Uint8Array
  readonly headers: HeaderList
  /** How many deliveries it holds. */
  readonly deliveries: number
}

const messageId = (place: Place) => `${placeName(place)}.moved`

/** Differs from the ids of the new partition's own schedules, which are their sequences. */
const laterId = ({ at, seq }: Place, from: number) => `from-${from}-${seq}-${at}`

/** Returns the subject of one partition that corresponds to one of another. */
export const inPartition = (
  subject: string,
  from: number,
  to: number,
  { subjects }: Names
): string => {
  for (const all of [subjects.deliveriesOf, subjects.backlogOf, subjects.schedulesOf]) {
    const prefix = all(from).slice(0, -1)
    if (subject.startsWith(prefix)) return all(to).slice(0, -1) + subject.slice(prefix.length)
  }
  return subject
}

/**
 * Returns a waiting delivery for another partition.
 *
 * @param at the time of its next attempt, ms since the epoch, if it is in the future. It then
 *   becomes a schedule: only the consumer of its old partition knows of a NAK.
 */
export const relocated = (
  { data, subject }: StoredMsg,
  delivery: Delivery,
  place: Place,
  [from, to]: readonly [from: number, to: number],
  at: number | undefined,
  names: Names
): Relocation => {
  const headers = deliveryHeaders({ ...delivery, origin: placeName(place) }, messageId(place))
  if (at === undefined)
    return { subject: inPartition(subject, from, to, names), body: data, headers, deliveries: 1 }
  return {
    subject: names.subjects.schedule(to, laterId(place, from)),
    body: data,
    deliveries: 1,
    headers: [
      ...headers,
      ...scheduleHeaders(at, names.subjects.delivery(to, delivery.tenant, delivery.endpoint))
    ]
  }
}

/** Returns references that wait in a backlog for another partition, as one message. */
export const relocatedReferences = (
  subject: string,
  references: ReadonlyArray<DeliveryReference>,
  place: Place,
  [from, to]: readonly [from: number, to: number],
  names: Names
): Relocation => ({
  subject: inPartition(subject, from, to, names),
  body: new Uint8Array(),
  deliveries: references.length,
  headers: [
    ["Nats-Msg-Id", messageId(place)],
    referencesHeader(references, originStreams(names, to))
  ]
})

/** Returns a message that is no delivery, unchanged: only its author knows its purpose. */
export const relocatedRaw = (
  { data, header, subject }: StoredMsg,
  place: Place,
  [from, to]: readonly [from: number, to: number],
  names: Names
): Relocation => {
  const target = header.get("Nats-Schedule-Target")
  const headers: Array<readonly [string, string]> = [["Nats-Msg-Id", messageId(place)]]
  for (const [name, values] of header)
    if (!name.startsWith("Nats-") && !isOfLabel(name))
      for (const value of values) headers.push([name, value])
  const common = { body: data, deliveries: entryCount((name) => header.get(name) || undefined) }
  if (target === "") return { ...common, subject: inPartition(subject, from, to, names), headers }
  return {
    ...common,
    subject: names.subjects.schedule(to, laterId(place, from)),
    headers: [
      ...headers,
      ["Nats-Schedule", header.get("Nats-Schedule")],
      ["Nats-Schedule-Target", inPartition(target, from, to, names)]
    ]
  }
}

/** An endpoint's deliveries that are in its new partition already, by their `roundKey`. */
export type Arrived = ReadonlyMap<string, Place>

/** Returns the identity of a message's delivery, even if the rest of it is unreadable. */
export const namedIn = (message: StoredMsg) =>
  deliveryIn(message) ??
  identifyDelivery(deliverySubject(message), (name) => message.header.get(name) || undefined)

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
