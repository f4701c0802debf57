import { Cause, Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { InFlight } from "../../broker/in-flight.ts"
import type { StoreFailure } from "../../broker/publish-once.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { untried } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import type { Directory } from "../../endpoints/directory.ts"
import type { EndpointHealth } from "../../endpoints/endpoint-health.ts"
import type { Facts } from "../../history/facts.ts"
import type { BacklogCandidate } from "../../routing/partition-owner.ts"
import type { Settlement } from "../execution/settlement.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import type { BacklogIndex } from "./backlog-index.ts"
import type { BacklogWriter } from "./backlog-writer.ts"
import type { Drainer } from "./drainer.ts"

interface DirectToBacklogOptions {
  readonly memory: Pick<PartitionMemory, "directDeliveries">
  readonly settlement: Pick<Settlement, "isOpen" | "relocate">
  readonly writer: Pick<BacklogWriter, "store">
  readonly index: Pick<BacklogIndex, "isFull">
  readonly drainer: Pick<Drainer, "storing">
  readonly health: Pick<EndpointHealth, "refuses">
  readonly inFlight: InFlight<Broker | Facts>
  readonly directory: Directory["Service"]
  /** Name of the stream of events. */
  readonly events: string
}

/**
 * Stores in its endpoint's backlog what cannot be attempted directly from its event. In the queue it
 * would wait behind the retries of all endpoints, which the broker delivers first, and for an endpoint
 * that is down it would only be moved from there to the backlog.
 */
export class DirectToBacklog {
  readonly #options: DirectToBacklogOptions

  constructor(options: DirectToBacklogOptions) {
    this.#options = options
  }

  /** Begins the store. Returns false where the delivery must not go to the backlog. */
  store(candidate: BacklogCandidate): boolean {
    const { body, delivery, ended } = candidate
    const { drainer, events, inFlight, memory, settlement, writer } = this.#options
    const { directDeliveries } = memory
    const { endpoint, eventAt, eventSeq, tenant } = delivery
    const key = endpointKey(tenant, endpoint)
    if (!this.#mayWait(key, delivery)) return false
    const place: Place = { stream: events, seq: eventSeq, at: eventAt }
    const hasLeft = () => directDeliveries.isDone(key, delivery)
    const taken = directDeliveries.begin(delivery)
    let why: StoreFailure | undefined = "unknown"
    const store = drainer.storing(
      delivery,
      writer.store({ body, delivery, place, progress: untried, hasLeft })
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
    inFlight.run(stored, () => {
      directDeliveries.leave(taken)
      ended(why)
    })
    return true
  }

  /** True where the delivery may wait in the backlog. */
  #mayWait(key: string, delivery: Delivery): boolean {
    const { directory, health, index, settlement } = this.#options
    return (
      !health.refuses(key) &&
      !index.isFull(key, delivery) &&
      settlement.isOpen &&
      directory.liveNow(delivery, key) !== undefined
    )
  }
}
