import type { Delivery, Progress } from "../domain/delivery.ts"
import { deliveryHeaders, firstRound, roundKey } from "../domain/delivery.ts"
import type { Event } from "../domain/event.ts"
import type { Planned } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"

/** Returns the delivery that a plan entry creates. */
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

/** Returns the subject and headers of a first round's message in its partition's queue. */
export const messageOf = (names: Names, partition: number, delivery: Delivery) => {
  const { endpoint, tenant } = delivery
  const messageId = `${roundKey(delivery)}.${endpoint}`
  return {
    subject: names.subjects.delivery(partition, tenant, endpoint),
    headers: deliveryHeaders(delivery, messageId)
  }
}
