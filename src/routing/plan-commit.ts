import { Effect } from "effect"
import { elapsedMs } from "../broker/elapsed.ts"
import type { PubAck, PublishError } from "../broker/publisher.ts"
import type { Event } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import type { UncommittedPlan } from "./direct-delivery.ts"
import type { StoredPart } from "./plan.ts"
import type { Plans } from "./plans.ts"
import { factId } from "./plans.ts"

/**
 * A plan of one part on its way to the history: stored by itself, or told in the fact of the only
 * delivery's end. Whichever comes first counts, for both have the same id. Where the broker may have
 * forgotten that id, it is looked for a plan before one is stored.
 */
export class PlanCommit implements UncommittedPlan {
  readonly event: Event
  readonly plan: Plan
  /** When it was planned, ms since the epoch. */
  readonly at: number
  readonly #plans: Plans
  readonly #began: number
  /** Where it is stored by itself. */
  stored: StoredPart | undefined
  /** It may be another plan that counts. */
  isUnsure = false
  /** Nobody is about to tell it. */
  #isFree = true
  /** Where the history has a plan of the event. */
  #seq: number | undefined

  /**
   * @param at when it was planned, ms since the epoch.
   * @param began when its routing was begun, ms of the monotonic clock.
   */
  constructor(plans: Plans, event: Event, plan: Plan, at: number, began: number) {
    this.at = at
    this.#began = began
    this.#plans = plans
    this.event = event
    this.plan = plan
  }

  get id(): string {
    return factId(this.event, this.plan)
  }

  get isCommitted(): boolean {
    return this.stored !== undefined && !this.isUnsure
  }

  /** Tries to store it by itself; `then` is called once, and it is unsure where that did not work. */
  commitThen(then: () => void): void {
    if (!this.#isFree || this.safeRepublishMs <= 0) {
      this.isUnsure = !this.isCommitted
      then()
      return
    }
    this.#try(() => {
      this.isUnsure ||= this.#seq === undefined
      then()
    })
  }

  /** Stores it by itself meanwhile, unless somebody is about to; may be called again and again. */
  commit(): void {
    if (!this.#isFree || this.safeRepublishMs <= 0) return
    this.#try(() => {
      this.#isFree = this.#seq === undefined
    })
  }

  piggyback(): Plan | undefined {
    if (!this.#isFree || this.safeRepublishMs <= 0) return undefined
    this.#isFree = false
    return this.plan
  }

  get safeRepublishMs(): number {
    return this.#plans.patience - (elapsedMs() - this.#began)
  }

  get committed(): Effect.Effect<number> {
    return Effect.suspend(() => {
      if (this.#seq !== undefined) return Effect.succeed(this.#seq)
      return this.safeRepublishMs > 0
        ? this.#store(this.safeRepublishMs)
        : Effect.flatMap(this.#plans.find(this.event), ([first]) =>
            first === undefined
              ? this.#store(this.#plans.patience)
              : Effect.sync(() => this.adoptExisting(first.seq))
          )
    })
  }

  adoptExisting(seq: number): number {
    this.#seq = seq
    this.isUnsure = true
    return seq
  }

  confirmOwn(): void {
    this.isUnsure = false
  }

  #try(then: () => void): void {
    this.#isFree = false
    this.#plans.tryStore(this.event, this.plan, this.at, (stored) => {
      if (stored !== undefined) this.#take(stored)
      then()
    })
  }

  #store(limit: number): Effect.Effect<number> {
    const store: Effect.Effect<PubAck, PublishError> = this.#plans.storeWithin(
      limit,
      this.event,
      this.plan,
      this.at
    )
    return store.pipe(
      Effect.map((stored) => this.#take(stored)),
      // Meanwhile it took too long: it may be there, or another.
      Effect.catch(() => this.committed)
    )
  }

  #take({ duplicate, seq }: PubAck): number {
    if (duplicate && this.stored?.seq !== seq) return this.adoptExisting(seq)
    this.#seq = seq
    this.isUnsure = false
    this.stored = { plan: this.plan, seq }
    return seq
  }
}
