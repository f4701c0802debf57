import { Clock, Effect, Schema } from "effect"
import { commandOwner } from "../../cluster/command-owner.ts"
import { notNow } from "../../domain/problem.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { endOf, hasEnded } from "../../history/fold/round.ts"
import { healthOf } from "../endpoints/endpoint-queries.ts"
import type { RetryNowRequest } from "../endpoints/retry-now.ts"
import { paceOf, refuseWhereHeld } from "../endpoints/retry-now.ts"
import { findDelivery } from "./explain-delivery.ts"

/** A delivery that was to be tried now. */
export const RetriedDelivery = Schema.Struct({
  /** `<event id>.<endpoint id>` */
  delivery: Schema.String,
  tenant: Schema.String,
  endpoint: Schema.String,
  /**
   * `moved`: it waited for its next attempt, and goes on now. `in-flight`: it is being attempted, or
   * about to be. `backlog`: it waits for its endpoint. `left`: its endpoint's backlog is full.
   */
  state: Schema.Literals(["moved", "in-flight", "backlog", "left"]),
  /** What sets its pace from here on, as sentences. */
  pace: Schema.Array(Schema.String)
})
export type RetriedDelivery = typeof RetriedDelivery.Type

/**
 * Lets one delivery go on now instead of at its next attempt's time, and probes an endpoint whose
 * circuit is open. Fails with DeliveryNotFound; Invalid where it has ended or its endpoint takes
 * nothing; EndpointNotFound; CommandFailed where no worker does it.
 *
 * @param delivery `<event id>.<endpoint id>`.
 * @param tenant needed if several tenants have such a delivery.
 * @param by who asks for it.
 */
export const retryDelivery = Effect.fnUntraced(function* (
  delivery: string,
  tenant: string | undefined,
  { ignoreRetryAfter = false }: RetryNowRequest,
  by: string
) {
  const life = yield* findDelivery(delivery, tenant)
  const { endpoint: id, eventAt, eventSeq, rounds } = life
  const last = rounds.at(-1)
  if (last !== undefined && rounds.every(({ state }) => hasEnded(state)))
    return yield* notNow(
      `${delivery} has ended (${endOf(last.state)}): resend it to have it sent again (\`petrel delivery resend ${delivery}\`)`
    )
  const { endpoint } = yield* getEndpoint(life.tenant, id)
  const held = refuseWhereHeld(endpoint)
  if (held !== undefined) return yield* held
  const { retried } = yield* commandOwner(
    {
      ...{ _tag: "RetryNow", tenant: life.tenant, endpoint: id, ignoreRetryAfter },
      event: { eventSeq, eventAt }
    },
    by
  )
  const { inFlight = 0, left = 0, moved = 0 } = retried ?? {}
  const state = moved > 0 ? "moved" : inFlight > 0 ? "in-flight" : left > 0 ? "left" : "backlog"
  const health = yield* healthOf(endpoint)
  const pace = paceOf(endpoint, health, yield* Clock.currentTimeMillis)
  return { delivery, tenant: life.tenant, endpoint: id, state, pace } satisfies RetriedDelivery
})
