import { Effect, Schedule, Semaphore } from "effect"
import type { Broker } from "../broker/connection.ts"
import type { PubAck, PublishError } from "../broker/publisher.ts"
import type { Event, EventIdentity } from "../domain/event.ts"
import { eventName } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import { Facts } from "../history/facts.ts"
import { findPlans, planId } from "../history/plans.ts"
import type { StoredPart } from "./plan.ts"
import { routedFact } from "./plan.ts"

/** Stores parts of plans, each once (inside the history's dedupe window), and finds them. */
export interface Plans {
  /**
   * Without a fiber: `settle` is called once, with nothing where that is not known to have worked.
   *
   * @param at when it was planned, ms since the epoch.
   */
  readonly tryStore: (
    event: Event,
    plan: Plan,
    at: number,
    settle: (stored: PubAck | undefined) => void
  ) => void
  /** Waits until it is stored; fails after `limit` ms. What was tried before is known by its `at`, too. */
  readonly storeWithin: (
    limit: number,
    event: Event,
    plan: Plan,
    at: number
  ) => Effect.Effect<PubAck, PublishError>
  /** The event's plan as far as the history has one, however long ago it was stored. */
  readonly find: (event: Event) => Effect.Effect<Array<StoredPart>>
  /** For how long the history surely knows what it was told, ms. */
  readonly patience: number
}

const retryPause = Schedule.spaced("1 second")

/** Under which the history takes a part of a plan once. */
export const factId = (event: Event, { part }: Plan): string => planId(identityOf(event), part)

const identityOf = ({ at, seq }: Event): EventIdentity => ({ eventSeq: seq, eventAt: at })

const nameOf = (event: Event): string => eventName(identityOf(event))

/** By the events' names. */
type Found = ReadonlyMap<string, Array<StoredPart>>

/**
 * Makes what finds the plan of an event. What is asked for while others are looked for is looked for
 * together after that: a worker that has stood still asks for all that it has in hand.
 */
const makeFind = Effect.gen(function* () {
  const context = yield* Effect.context<Broker>()
  const one = yield* Semaphore.make(1)
  let next:
    | { readonly events: Map<string, Event>; readonly found: Effect.Effect<Found> }
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
 * @param worker who plans.
 * @param patience half of the time for which the broker remembers ids, ms.
 */
export const makePlans = Effect.fnUntraced(function* (worker: string, patience: number) {
  const facts = yield* Facts
  const find = yield* makeFind
  const fact = (event: Event, plan: Plan, at: number) => routedFact(event, plan, at, worker)
  const plans: Plans = {
    patience,
    find,
    tryStore: (event, plan, at, settle) =>
      facts.tryAppend(fact(event, plan, at), factId(event, plan), settle),
    storeWithin: (limit, event, plan, at) =>
      facts.appendWithin(limit, fact(event, plan, at), factId(event, plan))
  }
  return plans
})
