import { Clock, Effect, Option, Schedule, Stream } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import { readStream } from "../../broker/scan.ts"
import type { Event } from "../../domain/event.ts"
import type { Plan } from "../../domain/fact.ts"
import { nobody } from "../../domain/token.ts"
import { decodeFact } from "../../history/fact-at.ts"
import { Facts } from "../../history/facts.ts"
import type { Untold } from "../straight.ts"
import type { StoredPart } from "./plan.ts"
import { routedFact } from "./plan.ts"

/** Stores parts of plans, each once (inside the history's dedupe window). */
export interface Plans {
  /** Without a fiber: `settle` is called once, with nothing where that is not known to have worked. */
  readonly tryStore: (
    event: Event,
    plan: Plan,
    settle: (stored: PubAck | undefined) => void
  ) => void
  /** Waits until it is stored, however long that takes. */
  readonly store: (event: Event, plan: Plan) => Effect.Effect<PubAck>
  /** The same for at most `limit` ms. */
  readonly storeWithin: (
    limit: number,
    event: Event,
    plan: Plan
  ) => Effect.Effect<PubAck, PublishError>
  /** The event's plan as far as the history has one, however long ago it was stored. */
  readonly find: (event: Event) => Effect.Effect<Array<StoredPart>>
  /** For how long the history surely knows what it was told, ms. */
  readonly patience: number
}

/** By how much the clocks of a cluster's nodes may differ, ms. */
const clocksApart = 60_000
const retryPause = Schedule.spaced("1 second")

const factId = ({ seq }: Event, { part }: Plan): string => `routed.${seq}.${part}`

/**
 * @param worker who plans.
 * @param patience half of the time for which the broker remembers ids, ms.
 */
export const makePlans = Effect.fnUntraced(function* (worker: string, patience: number) {
  const context = yield* Effect.context<Broker>()
  const { names } = yield* Broker
  const facts = yield* Facts
  const clock = yield* Clock.Clock
  const fact = (event: Event, plan: Plan) =>
    routedFact(event, plan, clock.currentTimeMillisUnsafe(), worker)
  const find = Effect.fnUntraced(function* ({ at, seq, tenant }: Event) {
    const parts: Array<StoredPart> = []
    yield* readStream({
      stream: names.history,
      subjects: [
        names.subjects.fact(tenant, nobody, "ok", "routed"),
        names.subjects.fact(tenant, "*", "ok", "delivered")
      ],
      fromTime: Math.max(0, at - clocksApart)
    }).pipe(
      Stream.runForEach((message) =>
        Effect.sync(() => {
          const { eventSeq, plan } = Option.getOrUndefined(decodeFact(message.string())) ?? {}
          if (eventSeq === seq && plan !== undefined)
            parts[plan.part] ??= { plan, seq: message.seq }
        })
      )
    )
    return parts
  })
  const plans: Plans = {
    patience,
    find: (event) =>
      find(event).pipe(Effect.retry(retryPause), Effect.orDie, Effect.provideContext(context)),
    tryStore: (event, plan, settle) =>
      facts.tryAppend(fact(event, plan), factId(event, plan), settle),
    store: (event, plan) => facts.append(fact(event, plan), factId(event, plan)),
    storeWithin: (limit, event, plan) =>
      facts.appendWithin(limit, fact(event, plan), factId(event, plan))
  }
  return plans
})

/**
 * A plan of one part on its way to the history: stored by itself, or told in the fact of the only
 * delivery's end. Whichever comes first counts, for both have the same id.
 */
export class Telling implements Untold {
  readonly event: Event
  readonly plan: Plan
  readonly #plans: Plans
  readonly #began: number
  /** Where it is stored by itself. */
  stored: StoredPart | undefined
  /** It may be another plan that counts. */
  isUnsure = false
  isTold = false
  #isAsked = false

  /** @param began when its routing was begun, ms of the monotonic clock. */
  constructor(plans: Plans, event: Event, plan: Plan, began: number) {
    this.#began = began
    this.#plans = plans
    this.event = event
    this.plan = plan
  }

  get id(): string {
    return factId(this.event, this.plan)
  }

  /** Tries to store it by itself; `then` is called once. */
  ask(then: () => void): void {
    this.#isAsked = true
    if (this.#isLate) {
      this.isUnsure = true
      then()
      return
    }
    this.#plans.tryStore(this.event, this.plan, (stored) => {
      if (stored === undefined) this.isUnsure = true
      else this.#take(stored)
      then()
    })
  }

  withEnd(): Plan | undefined {
    return this.#isAsked || this.#isLate ? undefined : this.plan
  }

  get told(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isTold) return Effect.void
      const store = Effect.map(this.#plans.store(this.event, this.plan), (stored) =>
        this.#take(stored)
      )
      if (!this.#isLate) return store
      return Effect.flatMap(this.#plans.find(this.event), ({ length }) =>
        length > 0 ? Effect.sync(() => this.anotherCounts()) : store
      )
    })
  }

  /** Meanwhile somebody else may have planned it, and the broker have forgotten the id of that. */
  get #isLate(): boolean {
    return performance.now() - this.#began > this.#plans.patience
  }

  anotherCounts(): void {
    this.isTold = true
    this.isUnsure = true
  }

  #take({ duplicate, seq }: PubAck): void {
    this.isTold = true
    if (duplicate) this.isUnsure = true
    else this.stored = { plan: this.plan, seq }
  }
}
