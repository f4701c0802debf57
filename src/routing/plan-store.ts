import { Effect, Schedule, Semaphore } from "effect"
import type { Broker } from "../broker/broker.ts"
import type { PubAck, PublishError } from "../broker/publisher.ts"
import type { Event, EventIdentity } from "../domain/event.ts"
import { eventName } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import { Facts } from "../history/facts.ts"
import { findPlans, planId } from "../history/plans.ts"
import type { StoredPart } from "./plan.ts"
import { routedFact } from "./plan.ts"

/** Stores parts of plans, each once within the history's deduplication window, and finds them. */
export interface PlanStore {
  /**
   * Stores without a fiber. Calls `settle` once, with undefined where success is not known.
   *
   * @param at when it was planned, ms since the epoch.
   */
  readonly tryStore: (
    event: Event,
    plan: Plan,
    at: number,
    settle: (stored: PubAck | undefined) => void
  ) => void
  /**
   * Waits until the part is stored; fails after `limit` ms. A repeat passes the `at` of the first
   * try, so that the plan is recognised where it was stored.
   */
  readonly storeWithin: (
    limit: number,
    event: Event,
    plan: Plan,
    at: number
  ) => Effect.Effect<PubAck, PublishError>
  /** Returns the parts of the event's plan that the history holds, however old. */
  readonly find: (event: Event) => Effect.Effect<Array<StoredPart>>
  /** How long the history surely recognises a message id, ms. */
  readonly safeRepublishMs: number
}

const retryPause = Schedule.spaced("1 second")

/** Returns the message id under which the history stores a part of a plan once. */
export const factId = (event: Event, { part }: Plan): string => planId(identityOf(event), part)

const identityOf = ({ at, seq }: Event): EventIdentity => ({ eventSeq: seq, eventAt: at })

const nameOf = (event: Event): string => eventName(identityOf(event))

/** Parts of plans, by event name. */
type FoundPlans = ReadonlyMap<string, Array<StoredPart>>

/**
 * Makes the search for the plan of an event. Requests that arrive during a search are answered
 * together by the next one: a worker that was suspended asks for all events that it holds.
 */
const makeFind = Effect.gen(function* () {
  const context = yield* Effect.context<Broker>()
  const one = yield* Semaphore.make(1)
  let next:
    | { readonly events: Map<string, Event>; readonly found: Effect.Effect<FoundPlans> }
    | undefined

  const begin = Effect.gen(function* () {
    const events = new Map<string, Event>()
    const read = Effect.suspend(() => {
      if (next === search) next = undefined
      return Effect.retry(findPlans([...events.values()].map(identityOf)), retryPause)
    })
    const found = yield* Effect.cached(
      one.withPermit(read).pipe(Effect.orDie, Effect.provideContext(context))
    )
    const search = { events, found }
    return search
  })

  return Effect.fnUntraced(function* (event: Event) {
    const search = next ?? (yield* begin)
    next = search
    const name = nameOf(event)
    search.events.set(name, event)
    return (yield* search.found).get(name) ?? []
  })
})

/**
 * @param worker name of the worker that plans.
 * @param safeRepublishMs half of the broker's deduplication window, ms.
 */
export const makePlanStore = Effect.fnUntraced(function* (worker: string, safeRepublishMs: number) {
  const facts = yield* Facts
  const find = yield* makeFind
  const fact = (event: Event, plan: Plan, at: number) => routedFact(event, plan, at, worker)
  const plans: PlanStore = {
    safeRepublishMs,
    find,
    tryStore: (event, plan, at, settle) =>
      facts.tryAppend(fact(event, plan, at), factId(event, plan), settle),
    storeWithin: (limit, event, plan, at) =>
      facts.appendWithin(limit, fact(event, plan, at), factId(event, plan))
  }
  return plans
})
