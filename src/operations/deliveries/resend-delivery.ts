import { Clock, Effect, Schema } from "effect"
import { eventId } from "../../domain/event.ts"
import { startReplay } from "../replays/replay-events.ts"
import { findDelivery } from "./explain-delivery.ts"

/** A delivery that was sent again. */
export const ResentDelivery = Schema.Struct({
  delivery: Schema.String,
  tenant: Schema.String,
  endpoint: Schema.String,
  /** The replay, whose round the delivery has. */
  replay: Schema.String
})
export type ResentDelivery = typeof ResentDelivery.Type

/**
 * Sends a delivery once more, also one that succeeded: as a replay of its event to its endpoint, in
 * a round of its own. Each call begins a new one. Fails with DeliveryNotFound, EventNotKept, or
 * Invalid where the endpoint takes nothing.
 *
 * @param delivery `<event id>.<endpoint id>`.
 * @param tenant needed if several tenants have such a delivery.
 * @param by who asks for it, recorded in the history.
 */
export const resendDelivery = Effect.fnUntraced(function* (
  delivery: string,
  tenant: string | undefined,
  by: string
) {
  const {
    endpoint,
    event,
    eventAt,
    eventSeq,
    tenant: owner
  } = yield* findDelivery(delivery, tenant)
  const now = yield* Clock.currentTimeMillis
  const { id, run } = yield* startReplay(
    {
      to: { tenant: owner, id: endpoint },
      event: event ?? eventId(undefined, eventSeq, eventAt),
      // The id may have been used again once the broker had forgotten it.
      since: eventAt,
      until: eventAt,
      id: `resend-${now.toString(36)}`
    },
    { by }
  )
  yield* run()
  return { delivery, tenant: owner, endpoint, replay: id } satisfies ResentDelivery
})
