import { Effect } from "effect"
import type { Broker } from "../broker/broker.ts"
import type { PubAck } from "../broker/publication.ts"
import { PublishError } from "../broker/publication.ts"
import type { StoreFailure } from "../broker/publish-once.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { deliveryHeaders, firstRound, roundKey } from "../domain/delivery.ts"
import type { Event } from "../domain/event.ts"
import type { Planned } from "../domain/fact.ts"
import { partitionOf } from "../domain/names.ts"
import type { DirectEnd, OwnedPartitions } from "./partition-owner.ts"

/* Where the fan-out brings a delivery: directly to its endpoint, into a backlog, or into a queue. */

/**
 * True where a delivery may be stored in its endpoint's backlog. One with a failed attempt waits in
 * the queue: only there it waits for its own time.
 */
export const mayEnterBacklog = ({ attempts }: Progress): boolean => attempts === 0

/** What the fan-out does after a direct delivery. */
export type AfterDirectEnd =
  /** Nothing: the delivery has ended. */
  | "leave"
  /** Store it, with the progress of its attempt. */
  | "store"
  /** Leave it to recovery, which locates it first. */
  | "locate"

/**
 * Decides how a delivery goes on after it was tried directly.
 *
 * @param isPlanUnsure whether another plan of the event may count.
 * @param isLate whether another router may have stored the delivery by now, and the broker may have
 *   forgotten its message id.
 */
export const afterDirectEnd = (
  end: DirectEnd["_tag"],
  isPlanUnsure: boolean,
  isLate: boolean
): AfterDirectEnd => {
  if (isPlanUnsure || end === "Unknown") return "locate"
  if (end === "Delivered") return "leave"
  return isLate ? "locate" : "store"
}

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

/** Stores what a plan leads to, for both paths of routing. */
export class DeliveryStore {
  readonly #broker: Pick<Broker["Service"], "names" | "send">
  readonly #partitions: number
  readonly #owned: Pick<OwnedPartitions, "storeInBacklog">

  /** @param partitions number of partitions. */
  constructor(
    broker: Pick<Broker["Service"], "names" | "send">,
    partitions: number,
    owned: Pick<OwnedPartitions, "storeInBacklog">
  ) {
    this.#broker = broker
    this.#partitions = partitions
    this.#owned = owned
  }

  /**
   * Stores without a fiber: a delivery that was not attempted in its endpoint's backlog, where this
   * worker owns its partition, and all others in the partition's queue.
   *
   * @param ended called once: without an argument when it is stored, else with the failure.
   */
  store(delivery: Delivery, body: Uint8Array, ended: (why?: StoreFailure) => void): void {
    const partition = this.#partitionOf(delivery)
    if (
      mayEnterBacklog(delivery.progress) &&
      this.#owned.storeInBacklog(partition, { delivery, body, ended })
    )
      return
    this.#send(partition, delivery, body, (result) =>
      ended(result instanceof PublishError ? result : undefined)
    )
  }

  /**
   * Stores in the queue, once within the broker's memory of message ids. For recovery: the ids of
   * the queue are those under which another router may have stored the delivery.
   */
  enqueue(delivery: Delivery, body: Uint8Array): Effect.Effect<PubAck, PublishError> {
    return Effect.callback((resume) =>
      this.#send(this.#partitionOf(delivery), delivery, body, (result) =>
        resume(result instanceof PublishError ? Effect.fail(result) : Effect.succeed(result))
      )
    )
  }

  #partitionOf({ endpoint, tenant }: Delivery): number {
    return partitionOf(tenant, endpoint, this.#partitions)
  }

  #send(
    partition: number,
    delivery: Delivery,
    body: Uint8Array,
    settle: (result: PubAck | PublishError) => void
  ): void {
    const { names, send } = this.#broker
    const { endpoint, tenant } = delivery
    const messageId = `${roundKey(delivery)}.${endpoint}`
    const subject = names.subjects.delivery(partition, tenant, endpoint)
    send(subject, body, deliveryHeaders(delivery, messageId), settle)
  }
}
