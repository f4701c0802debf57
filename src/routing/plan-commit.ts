import { Effect } from "effect"
import type { PubAck, PublishError } from "../broker/publication.ts"
import type { Event } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import { elapsedMs } from "../time/elapsed.ts"
import type { UncommittedPlan } from "./partition-owner.ts"
import type { StoredPart } from "./plan.ts"
import type { PlanStore } from "./plan-store.ts"
import { factId } from "./plan-store.ts"

/**
 * Commits a plan of one part to the history: as a fact of its own, or within the fact of its single
 * delivery's outcome. The first to be stored counts, for both have the same message id. Where the
 * broker may have forgotten that id, the history is searched for a plan before one is stored.
 */
export class PlanCommit implements UncommittedPlan {
  readonly event: Event
  readonly plan: Plan
  /** When it was planned, ms since the epoch. */
  readonly at: number
  readonly #plans: PlanStore
  readonly #began: number
  /** Set where the history holds this plan as a fact of its own. */
  stored: StoredPart | undefined
  /** True where another plan may count. */
  isUnsure = false
  /** True while nobody is storing the plan, neither separately nor with an outcome. */
  #isFree = true
  /** Sequence of the event's plan, where the history is known to hold one. */
  #seq: number | undefined

  /**
   * @param at when it was planned, ms since the epoch.
   * @param began when its routing was begun, ms of the monotonic clock.
   */
  constructor(plans: PlanStore, event: Event, plan: Plan, at: number, began: number) {
    this.at = at
    this.#began = began
    this.#plans = plans
    this.event = event
    this.plan = plan
  }

  /** Makes one of a part that the history holds as a fact of its own. */
  static ofStored(
    plans: PlanStore,
    event: Event,
    { plan, seq }: StoredPart,
    at: number,
    began: number
  ): PlanCommit {
    const made = new PlanCommit(plans, event, plan, at, began)
    made.#isFree = false
    made.#take({ seq, duplicate: false })
    return made
  }

  get id(): string {
    return factId(this.event, this.plan)
  }

  get isCommitted(): boolean {
    return this.stored !== undefined && !this.isUnsure
  }

  /**
   * Tries to store the plan as a fact of its own. Calls `then` once; `isUnsure` is true where the
   * append did not succeed.
   */
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

  /**
   * Starts to store the plan as a fact of its own, unless somebody is already storing it. May be
   * called repeatedly.
   */
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
    return this.#plans.safeRepublishMs - (elapsedMs() - this.#began)
  }

  get committed(): Effect.Effect<number> {
    return Effect.suspend(() => {
      if (this.#seq !== undefined) return Effect.succeed(this.#seq)
      return this.safeRepublishMs > 0
        ? this.#store(this.safeRepublishMs)
        : Effect.flatMap(this.#plans.find(this.event), ([first]) =>
            first === undefined
              ? this.#store(this.#plans.safeRepublishMs)
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
      // The append timed out: the history may hold this plan, another plan, or none.
      Effect.catch(() => this.committed)
    )
  }

  #take({ duplicate, seq }: Pick<PubAck, "duplicate" | "seq">): number {
    if (duplicate && this.stored?.seq !== seq) return this.adoptExisting(seq)
    this.#seq = seq
    this.isUnsure = false
    this.stored = { plan: this.plan, seq }
    return seq
  }
}
