import { Cause, Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { InFlight } from "../../broker/in-flight.ts"
import type { StoreFailure } from "../../broker/publish-once.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { untried } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { Directory } from "../../endpoints/directory.ts"
import type { EndpointHealth } from "../../endpoints/endpoint-health.ts"
import type { Facts } from "../../history/facts.ts"
import type { BacklogCandidate } from "../../routing/partition-owner.ts"
import type { Settlement } from "../execution/settlement.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import type { Backlog } from "./backlog.ts"
import type { Drains } from "./drains.ts"

export interface DirectToBacklogOptions {
  readonly memory: Pick<PartitionMemory, "directDeliveries">
  readonly settlement: Pick<Settlement, "relocate" | "isOpen">
  readonly backlog: Backlog
  readonly drains: Pick<Drains, "isBehind" | "isFull" | "storing">
  readonly health: Pick<EndpointHealth, "limit" | "refuses">
  readonly inFlightWork: InFlight<Broker | Facts>
}

/**
 * Stores a delivery of an event in its endpoint's backlog at once, where the queue would only move
 * it there. For an endpoint that is down, this saves one store and one delivery by the broker per
 * event.
 */
export const makeDirectToBacklog = Effect.fnUntraced(function* (options: DirectToBacklogOptions) {
  const { backlog, drains, health, settlement, inFlightWork } = options
  const { directDeliveries } = options.memory
  const { names } = yield* Broker
  const directory = yield* Directory

  /** True where the delivery would have to wait, and may wait in the backlog. */
  const waits = (key: string, delivery: Delivery) =>
    (drains.isBehind(key) || health.limit(key) === 0) &&
    !health.refuses(key) &&
    !drains.isFull(key) &&
    settlement.isOpen() &&
    directory.liveNow(delivery, key) !== undefined

  return ({ body, delivery, ended }: BacklogCandidate): boolean => {
    const { endpoint, eventAt, eventSeq, tenant } = delivery
    const key = endpointKey(tenant, endpoint)
    if (!waits(key, delivery)) return false
    const place = { stream: names.events, seq: eventSeq, at: eventAt }
    const hasLeft = () => directDeliveries.isDone(key, delivery)
    const taken = directDeliveries.begin(delivery)
    let why: StoreFailure | undefined = "unknown"
    const store = drains.storing(delivery, (after) =>
      backlog.store({ body, delivery, place }, untried, after, hasLeft)
    )
    const stored = settlement.relocate(store).pipe(
      Effect.match({
        onFailure: (error) => {
          why = error
        },
        onSuccess: () => {
          directDeliveries.add(key, delivery)
          why = undefined
        }
      }),
      Effect.tapCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) =>
          Effect.logError("a delivery met a defect on its way to the backlog", cause, {
            seq: eventSeq,
            endpoint
          })
      )
    )
    inFlightWork.run(stored, () => {
      directDeliveries.leave(taken)
      ended(why)
    })
    return true
  }
})
