import { Clock, Effect, Schema } from "effect"
import { eventId } from "../../domain/event.ts"
import { CurrentOnce } from "../idempotency-key.ts"
import { startReplay } from "../replays/replay-events.ts"
import { findDelivery } from "./explain-delivery.ts"

/** A delivery that was sent again. */
export const ResentDelivery = Schema.Struct({
  delivery: Schema.String.annotateKey({ description: "The id of the delivery." }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  replay: Schema.String.annotateKey({ description: "The replay, whose round the delivery has." })
})
export type ResentDelivery = typeof ResentDelivery.Type

/** Digits of the name of a replay that is made from an Idempotency-Key. */
const nameDigits = 16

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
  const once = yield* CurrentOnce
  const { id, run } = yield* startReplay(
    {
      to: { tenant: owner, id: endpoint },
      event: event ?? eventId(undefined, eventSeq, eventAt),
      // The id may have been used again once the broker had forgotten it.
      since: eventAt,
      until: eventAt,
      id: `resend-${once === undefined ? now.toString(36) : once.id.slice(0, nameDigits)}`
    },
    // One that is tried again after it was sent is the same.
    { by, askedAt: once?.at }
  )
  yield* run()
  return { delivery, tenant: owner, endpoint, replay: id } satisfies ResentDelivery
})
