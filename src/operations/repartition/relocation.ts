import type { StoredMsg } from "@nats-io/jetstream"
import type { HeaderList } from "../../broker/publisher.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { deliveryHeaders } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName } from "../../domain/fact.ts"
import type { Names } from "../../domain/names.ts"

/** A message for another partition. */
export interface Relocation {
  readonly subject: string
  readonly body: Uint8Array
  readonly headers: HeaderList
}

const messageId = (place: Place) => `${placeName(place)}.moved`

/** Differs from the ids of the new partition's own schedules, which are their sequences. */
const laterId = ({ at, seq }: Place, from: number) => `from-${from}-${seq}-${at}`

/** Returns the subject of one partition that corresponds to one of another. */
const inPartition = (subject: string, from: number, to: number, { subjects }: Names): string => {
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
