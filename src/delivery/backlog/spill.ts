import { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { Progress } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName, slotOf } from "../../domain/fact.ts"
import type { EndpointHealth } from "../../endpoints/endpoint-health.ts"
import type { Facts } from "../../history/facts.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { Interpreter, Relocate } from "../execution/interpreter.ts"
import type { Settlement } from "../execution/settlement.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import { isUntriedFirst } from "../recovery/partition-memory.ts"
import type { BacklogWriter } from "./backlog-writer.ts"
import type { Drainer } from "./drainer.ts"

interface SpillOptions {
  readonly memory: StreamMemory
  readonly interpreter: Pick<Interpreter, "hurry" | "reject" | "relocate">
  readonly writer: Pick<BacklogWriter, "store">
  readonly drainer: Pick<Drainer, "isFull" | "storing">
  readonly health: Pick<EndpointHealth, "refuses">
  readonly settlement: Pick<Settlement, "moved">
}

/** Moves queued deliveries that cannot wait in memory to their endpoints' backlogs. */
export class Spill {
  readonly #options: SpillOptions
  /**
   * Moves with an unknown outcome, by place: a later try continues the same move, with the progress
   * that it began with. The message itself knows of no attempt that was decided about since.
   */
  readonly #begun = new Map<string, Progress>()

  constructor(options: SpillOptions) {
    this.#options = options
  }

  /** True while no move has an unknown outcome. */
  get isIdle(): boolean {
    return this.#begun.size === 0
  }

  /** True where a message's move was begun and its outcome is unknown. */
  hasBegun(place: Place): boolean {
    return this.#begun.size > 0 && this.#begun.has(placeName(place))
  }

  /** Drops the move of a message that has ended. */
  forget(place: Place): void {
    if (this.#begun.size > 0) this.#begun.delete(placeName(place))
  }

  /**
   * Moves a delivery to its endpoint's backlog, or dead-letters it where the endpoint's circuit or
   * the backlog's size allows no more.
   *
   * @param key of its endpoint.
   */
  move(key: string, handle: AckHandle): Effect.Effect<unknown, unknown, Broker | Facts> {
    const { drainer, health, interpreter } = this.#options
    if (this.hasBegun(handle.place)) return this.resume(handle)
    if (health.refuses(key)) return interpreter.reject(handle, "circuit-open")
    if (drainer.isFull(key, handle.delivery)) return interpreter.reject(handle, "backlog-full")
    return interpreter.relocate(handle, this.#store)
  }

  /**
   * Continues a move that was begun. The delivery may be in the backlog already, and must not end
   * here as well.
   */
  resume(handle: AckHandle): Effect.Effect<void> {
    const { settlement } = this.#options
    const progress = this.#begun.get(placeName(handle.place)) ?? handle.delivery.progress
    return settlement.moved(handle, this.#store(handle, progress))
  }

  /**
   * Moves a delivery that may be waiting for its next attempt to its endpoint's backlog, so that it
   * is attempted as soon as the endpoint takes it. Returns undefined where the backlog takes none.
   *
   * @param key of its endpoint.
   */
  hurry(
    key: string,
    handle: AckHandle
  ): Effect.Effect<unknown, unknown, Broker | Facts> | undefined {
    const { drainer, health, interpreter } = this.#options
    if (this.hasBegun(handle.place)) return this.resume(handle)
    return health.refuses(key) || drainer.isFull(key, handle.delivery)
      ? undefined
      : interpreter.hurry(handle, this.#store)
  }

  readonly #store: Relocate = ({ body, delivery, place }, progress) => {
    const { drainer, memory, writer } = this.#options
    const name = placeName(place)
    this.#begun.set(name, progress)
    const hasLeft = () => memory.completed.has(slotOf(place), place.at)
    const store = writer.store({ body, delivery, place, progress, hasLeft })
    return Effect.tap(drainer.storing(delivery, store), () =>
      Effect.sync(() => {
        if (isUntriedFirst({ ...delivery, progress })) {
          const { endpoint, tenant } = delivery
          memory.directDeliveries.add(endpointKey(tenant, endpoint), delivery)
        }
        this.#begun.delete(name)
      })
    )
  }
}
