import type { Linked } from "../../broker/intrusive-list.ts"
import { IntrusiveList } from "../../broker/intrusive-list.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { EventIdentity } from "../../domain/event.ts"
import { eventName } from "../../domain/event.ts"
import type { PackedCompletions } from "./recent-completions.ts"
import { RecentCompletions } from "./recent-completions.ts"

/**
 * Age below which an event cannot have been redelivered as new, ms: that takes an election, which
 * lasts longer.
 */
const youngEventMs = 1_000
/** Number of generations kept besides the current one. */
const kept = 2

type Identity = Pick<Delivery, "tenant" | "endpoint" | "eventSeq" | "eventAt">

/** A delivery that is in flight, or being stored in the backlog. */
export interface DirectInFlight extends Linked<DirectInFlight> {
  readonly delivery: Identity
}

/** What the registry remembers, the newest generation first. */
interface PackedDirectDeliveries {
  readonly done: ReadonlyArray<PackedCompletions>
  readonly failed: ReadonlyArray<ReadonlyMap<string, Progress>>
}

const nameOf = (of: Identity): string => `${eventName(of)}.${endpointKey(of.tenant, of.endpoint)}`

/**
 * What a partition's owner remembers of first rounds that it takes directly from their events:
 * those in flight, and those that have ended or wait in the backlog. If the broker redelivers such
 * an event to another router, that router may put the same delivery into the queue.
 */
export class DirectDeliveryRegistry {
  readonly #underway = new IntrusiveList<DirectInFlight>()
  /** When each delivery's event was stored. */
  readonly #done: Array<RecentCompletions>
  /** Progress of the failed ones, by name. */
  readonly #failed: Array<Map<string, Progress>>

  /** @param packed what the owner before remembered. (Default: nothing) */
  constructor(packed?: PackedDirectDeliveries) {
    this.#done = packed?.done.map(RecentCompletions.from) ?? [new RecentCompletions()]
    this.#failed = packed?.failed.map((failed) => new Map(failed)) ?? [new Map()]
  }

  /** True while no delivery is attempted directly, or being stored in the backlog. */
  get isIdle(): boolean {
    return this.#underway.size === 0
  }

  get packed(): PackedDirectDeliveries {
    return { done: this.#done.map(({ packed }) => packed), failed: this.#failed }
  }

  /** Registers a delivery as in flight until `leave`. */
  begin(delivery: Identity): DirectInFlight {
    const taken: DirectInFlight = { delivery, before: undefined, after: undefined }
    this.#underway.add(taken)
    return taken
  }

  leave(taken: DirectInFlight): void {
    this.#underway.remove(taken)
  }

  /** True while the delivery is attempted, or being stored in the backlog. */
  isInFlight({ endpoint, eventAt, eventSeq, tenant }: Identity): boolean {
    for (const { delivery } of this.#underway)
      if (
        delivery.eventSeq === eventSeq &&
        delivery.eventAt === eventAt &&
        delivery.endpoint === endpoint &&
        delivery.tenant === tenant
      )
        return true
    return false
  }

  /**
   * Notes that a delivery needs no queue: it has ended, or waits in the backlog.
   *
   * @param key of its endpoint.
   */
  add(key: string, { eventAt, eventSeq }: EventIdentity): void {
    this.#done[0]?.set(key, eventSeq, eventAt)
  }

  /**
   * True where a delivery needs no queue.
   *
   * @param key of its endpoint.
   */
  isDone(key: string, { eventAt, eventSeq }: EventIdentity): boolean {
    for (const generation of this.#done) if (generation.get(key, eventSeq) === eventAt) return true
    return false
  }

  /**
   * Remembers for as long again that a delivery needs no queue.
   *
   * @param key of its endpoint.
   * @returns how many rotations ago it was noted last.
   */
  renew(key: string, event: EventIdentity): number {
    const { eventAt, eventSeq } = event
    const age = this.#done.findIndex((generation) => generation.get(key, eventSeq) === eventAt)
    if (age > 0) this.add(key, event)
    return Math.max(0, age)
  }

  /**
   * True where an event was redelivered as if for the first time after its delivery had ended.
   *
   * @param key of its endpoint.
   * @param now ms since the epoch.
   */
  endedBefore(key: string, event: EventIdentity, now: number): boolean {
    return now - event.eventAt > youngEventMs && this.isDone(key, event)
  }

  /**
   * Notes a failed direct attempt. The delivery goes into the queue, where an earlier copy may
   * already be without this progress.
   */
  failed(delivery: Identity, progress: Progress): void {
    this.#failed[0]?.set(nameOf(delivery), progress)
  }

  /** Returns the progress after a failed direct attempt. */
  progressOf(delivery: Identity): Progress | undefined {
    const name = nameOf(delivery)
    return this.#failed.find((generation) => generation.has(name))?.get(name)
  }

  /** Forgets the oldest generation of completed and failed deliveries. */
  rotate(): void {
    const expected = this.#done[0]?.size ?? 0
    const oldest = this.#done.length > kept ? this.#done.pop() : undefined
    this.#done.unshift(oldest?.emptied(expected) ?? new RecentCompletions(expected))
    this.#failed.unshift(new Map())
    if (this.#failed.length > kept + 1) this.#failed.pop()
  }
}
