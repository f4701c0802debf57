import { Effect } from "effect"
import type { Broker } from "../../broker/connection.ts"
import type { InFlight } from "../../broker/in-flight.ts"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName } from "../../domain/fact.ts"
import type { EndpointHealth } from "../../endpoints/endpoint-health.ts"
import type { Facts } from "../../history/facts.ts"
import type { Handling, Relocate } from "../execution/handling.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import type { Backlog } from "./backlog.ts"
import type { Drains } from "./drains.ts"

export interface SpillOptions {
  readonly memory: StreamMemory
  readonly queue: Handling
  readonly backlog: Backlog
  readonly drains: () => Drains
  readonly health: Pick<EndpointHealth, "refuses">
  readonly inFlightWork: InFlight<Broker | Facts>
  /** Called after each delivery that was moved, ended or given back. */
  readonly letGo: (held: AckHandle) => void
}

/**
 * Decides about queued deliveries that cannot wait in memory: most move to their endpoint's
 * backlog.
 */
export const makeSpill = (options: SpillOptions) => {
  const { backlog, drains, health, letGo, memory, queue, inFlightWork } = options
  /** Moves with an unknown outcome, by place: a later try continues the same move. */
  const moves = new Map<string, Effect.Effect<PubAck, PublishError>>()
  const toBacklog: Relocate = (held, progress) => {
    const name = placeName(held.place)
    const hasLeft = () => memory.settled.has(held.place.seq, held.delivery)
    const store =
      moves.get(name) ??
      drains().storing(held.delivery, (after) => backlog.store(held, progress, after, hasLeft))
    moves.set(name, store)
    return Effect.tap(store, () => Effect.sync(() => moves.delete(name)))
  }

  return {
    /** Returns whether a message's move was begun and its outcome is unknown. */
    hasBegun: (place: Place) => moves.size > 0 && moves.has(placeName(place)),
    /** Drops the move of a message that has ended. */
    forget: (place: Place) => moves.size > 0 && moves.delete(placeName(place)),
    /**
     * Moves a delivery to its endpoint's backlog, or dead-letters it where the endpoint's circuit
     * or the backlog's size allows no more.
     */
    leave: (key: string, held: AckHandle) => {
      const isMoving = moves.has(placeName(held.place))
      const reason =
        !isMoving && health.refuses(key)
          ? "circuit-open"
          : !isMoving && drains().isFull(key)
            ? "backlog-full"
            : undefined
      const done = reason === undefined ? queue.defer(held, toBacklog) : queue.refuse(held, reason)
      inFlightWork.run(done, (finished) => {
        if (!finished) held.nak(1)
        letGo(held)
      })
    }
  }
}
