import type { Delivery, Progress } from "../domain/delivery.ts"
import { deliveryHeaders, firstRound, roundKey } from "../domain/delivery.ts"
import type { Event } from "../domain/event.ts"
import type { Planned } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"

/** The delivery that a plan leads to. */
export const deliveryOf = (event: Event, planned: Planned, progress: Progress): Delivery => ({
  tenant: event.tenant,
  endpoint: planned.id,
  event: event.id,
  eventSeq: event.seq,
  eventAt: event.at,
  type: event.type,
  round: firstRound,
  began: event.at,
  deadline: planned.deadline,
  generation: planned.generation,
  revision: planned.revision,
  content: event.content,
  progress
})

/** The message that a first round is in its partition's queue: its subject and its headers. */
export const messageOf = (names: Names, partition: number, delivery: Delivery) => {
  const { endpoint, tenant } = delivery
  const messageId = `${roundKey(delivery)}.${endpoint}`
  return {
    subject: names.subjects.delivery(partition, tenant, endpoint),
    headers: deliveryHeaders(delivery, messageId)
  }
}
