import type { StoredMsg } from "@nats-io/jetstream"
import type { HeaderList } from "../../broker/publisher.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { deliveryHeaders } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName } from "../../domain/fact.ts"
import type { Names } from "../../domain/names.ts"

/** What a message becomes in another partition. */
export interface Relocation {
  readonly subject: string
  readonly body: Uint8Array
  readonly headers: HeaderList
}

const messageId = (place: Place) => `${placeName(place)}.moved`

/** Nobody can mistake it for one of the new partition's own: those are called by a sequence of theirs. */
const laterId = ({ at, seq }: Place, from: number) => `from-${from}-${seq}-${at}`

/** A subject of one partition as it is called in another. */
const inPartition = (subject: string, from: number, to: number, { subjects }: Names): string => {
  for (const all of [subjects.deliveriesOf, subjects.backlogOf, subjects.schedulesOf]) {
    const prefix = all(from).slice(0, -1)
    if (subject.startsWith(prefix)) return all(to).slice(0, -1) + subject.slice(prefix.length)
  }
  return subject
}

/**
 * A waiting delivery in another partition.
 *
 * @param at when it is attempted next, ms since the epoch, where that is later than now. It waits
 *   for that as a schedule: a NAK is known to the consumer of its own partition only.
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
    return { subject: inPartition(subject, from, to, names), body: data, headers }
  return {
    subject: names.subjects.schedule(to, laterId(place, from)),
    body: data,
    headers: [
      ...headers,
      ["Nats-Schedule", `@at ${new Date(at).toISOString()}`],
      ["Nats-Schedule-Target", names.subjects.delivery(to, delivery.tenant, delivery.endpoint)]
    ]
  }
}

/** A message that is no delivery, as it is: whoever put it there may know what it is for. */
export const relocatedRaw = (
  { data, header, subject }: StoredMsg,
  place: Place,
  [from, to]: readonly [from: number, to: number],
  names: Names
): Relocation => {
  const target = header.get("Nats-Schedule-Target")
  const headers: Array<readonly [string, string]> = [["Nats-Msg-Id", messageId(place)]]
  for (const [name, values] of header)
    if (!name.startsWith("Nats-")) for (const value of values) headers.push([name, value])
  if (target === "") return { subject: inPartition(subject, from, to, names), body: data, headers }
  return {
    subject: names.subjects.schedule(to, laterId(place, from)),
    body: data,
    headers: [
      ...headers,
      ["Nats-Schedule", header.get("Nats-Schedule")],
      ["Nats-Schedule-Target", inPartition(target, from, to, names)]
    ]
  }
}
