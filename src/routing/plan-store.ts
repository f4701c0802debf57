import { Effect, Schedule, Semaphore } from "effect"
import type { PubAck, PublishError } from "../broker/publication.ts"
import type { Event, EventIdentity } from "../domain/event.ts"
import { eventName } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import { Facts } from "../history/facts.ts"
import { findPlans, planId } from "../history/plans.ts"
import type { StoredPart } from "./plan.ts"
import { routedFact } from "./plan.ts"

/**
 * Makes a lookup that answers many requests by reading once. Requests that arrive while it reads
 * are answered together by its next reading: they may ask for what has been stored since.
 *
 * @param look reads for all these requests; each requester picks its own answer from the result.
 */
export const makeJointLookup = Effect.fnUntraced(function* <Request, Found, E, R>(
  look: (requests: ReadonlyArray<Request>) => Effect.Effect<Found, E, R>
) {
  const context = yield* Effect.context<R>()
  const one = yield* Semaphore.make(1)
  let next:
    | { readonly requests: Array<Request>; readonly found: Effect.Effect<Found, E> }
    | undefined

  const begin = Effect.gen(function* () {
    const requests: Array<Request> = []
    const read = Effect.suspend(() => {
      if (next === lookup) next = undefined
      return look(requests)
    })
    const found = yield* Effect.cached(Effect.provideContext(one.withPermit(read), context))
    const lookup = { requests, found }
    return lookup
  })

  return Effect.fnUntraced(function* (request: Request) {
    const lookup = next ?? (yield* begin)
    next = lookup
    lookup.requests.push(request)
    return yield* lookup.found
  })
})

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

/** Makes the search for the plan of an event: a worker that was suspended asks for all it holds. */
const makeFind = Effect.gen(function* () {
  const lookup = yield* makeJointLookup((events: ReadonlyArray<Event>) =>
    Effect.orDie(Effect.retry(findPlans(events.map(identityOf)), retryPause))
  )
  return (event: Event) =>
    Effect.map(lookup(event), (found: FoundPlans) => found.get(nameOf(event)) ?? [])
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
