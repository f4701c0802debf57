import type { Linked } from "../../broker/intrusive-list.ts"
import { IntrusiveList } from "../../broker/intrusive-list.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { EventIdentity } from "../../domain/event.ts"
import { eventName } from "../../domain/event.ts"
import { RecentCompletions } from "./recent-completions.ts"

/** Generations kept besides the present one. */
const kept = 2

type Identity = Pick<Delivery, "tenant" | "endpoint" | "eventSeq" | "eventAt">

/** One that is attempted, or being stored in the backlog. */
interface Taken extends Linked<Taken> {
  readonly delivery: Identity
}

const nameOf = (of: Identity): string => `${eventName(of)}.${endpointKey(of.tenant, of.endpoint)}`

/**
 * What a partition's owner remembers of first rounds that it takes from their events: which are under
 * way, and which have ended or wait in the backlog. Where the broker hands such an event to another
 * router, that may put the same into the queue.
 */
export class DirectDeliveryRegistry {
  readonly #underway = new IntrusiveList<Taken>()
  /** With the time at which each one's event was stored. */
  readonly #done = [new RecentCompletions()]
  /** By name: what is known of those that did not succeed. */
  readonly #failed: Array<Map<string, Progress>> = [new Map()]

  /** It is under way from now on, until it is left. */
  begin(delivery: Identity): Taken {
    const taken: Taken = { delivery, before: undefined, after: undefined }
    this.#underway.add(taken)
    return taken
  }

  leave(taken: Taken): void {
    this.#underway.remove(taken)
  }

  /** Whether it is attempted, or being stored in the backlog, at the moment. */
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
   * One needs no queue: it has ended, or waits in the backlog.
   *
   * @param key of the endpoint.
   */
  add(key: string, { eventAt, eventSeq }: EventIdentity): void {
    this.#done[0]?.set(key, eventSeq, eventAt)
  }

  /**
   * Whether it needs no queue.
   *
   * @param key of its endpoint.
   */
  isDone(key: string, { eventAt, eventSeq }: EventIdentity): boolean {
    for (const generation of this.#done) if (generation.get(key, eventSeq) === eventAt) return true
    return false
  }

  /** One did not succeed, and goes into the queue, where it may be already without what is known now. */
  failed(delivery: Identity, progress: Progress): void {
    this.#failed[0]?.set(nameOf(delivery), progress)
  }

  /** What is known of one from an attempt that did not succeed. */
  progressOf(delivery: Identity): Progress | undefined {
    const name = nameOf(delivery)
    return this.#failed.find((generation) => generation.has(name))?.get(name)
  }

  /** Forgets the oldest generation of what is done or has failed. */
  rotate(): void {
    const expected = this.#done[0]?.size ?? 0
    const oldest = this.#done.length > kept ? this.#done.pop() : undefined
    this.#done.unshift(oldest?.emptied(expected) ?? new RecentCompletions(expected))
    this.#failed.unshift(new Map())
    if (this.#failed.length > kept + 1) this.#failed.pop()
  }
}
