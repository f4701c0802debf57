import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { maxRoundSkewMs } from "../domain/clock-bounds.ts"
import type { Delivery } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { EventIdentity } from "../domain/event.ts"
import { eventName } from "../domain/event.ts"
import { placeName } from "../domain/fact.ts"
import type { SentAgain } from "../history/dead-fates.ts"
import type { DeadLetter } from "../history/dead-letters.ts"
import { getDeadLetter } from "../history/dead-letters.ts"
import { readLateDeliveries } from "../history/late-deliveries.ts"
import type { BackpressureLimits } from "./backpressure.ts"
import type { Contents, Round, StartedRound } from "./round.ts"
import type { Rounds } from "./rounds.ts"
import { makeRounds } from "./rounds.ts"
import { steadyLayout } from "./steady-layout.ts"
import type { Unfit } from "./target.ts"
import { readTarget } from "./target.ts"

/** Endpoints whose dead letters are sent again at the same time. */
const maxConcurrentEndpoints = 8
/** The redelivery to one endpoint. */
export interface EndpointRedelivery {
  readonly tenant: string
  readonly endpoint: string
  /** Why the endpoint accepts nothing. Its `fresh` dead letters are then skipped. */
  readonly unfit: Unfit | undefined
  /** Dead letters that were not redelivered before. */
  readonly fresh: ReadonlyArray<Round>
  /** Rounds that were claimed by a process that died before it stored them. */
  readonly finishing: ReadonlyArray<Round>
  /** The number of dead letters that were redelivered before. */
  readonly before: number
  /** The number of those that a late success of a former owner resolved. */
  readonly late: number
  readonly rounds: Rounds
}

/** What is redelivered. */
export interface RoundsToRedeliver {
  readonly letters: ReadonlyArray<DeadLetter>
  /**
   * Earlier redeliveries without an end. If their claimant died, they are finished, too, even if
   * their dead letter is not selected or no longer exists.
   */
  readonly unended: ReadonlyArray<SentAgain>
  /** Who asked for it. */
  readonly by: string
  readonly pace?: BackpressureLimits | undefined
  /** Called with the number of deliveries that wait for an endpoint while throttled, and with 0. */
  readonly held?: ((endpoint: string, waiting: number) => void) | undefined
}

/** Returns the round of a dead letter's redelivery. Each dead letter has one. */
export const redeliveryRound = (dead: number): string => `d${dead}`

const readLetter = Effect.fnUntraced(function* (
  { tenant, endpoint }: Pick<Delivery, "tenant" | "endpoint">,
  round: Round
) {
  const { dead = 0 } = round
  const { names } = yield* Broker
  const letter = yield* getDeadLetter(dead)
  if (letter === undefined) return undefined
  const { delivery } = letter
  // If DEAD was truncated, the sequence may hold another dead letter.
  const isIt = delivery.tenant === tenant && delivery.endpoint === endpoint
  if (!isIt || eventName(delivery) !== eventName(round)) return undefined
  const { content, event, type } = delivery
  const origin = placeName({ stream: names.dead, seq: dead, at: letter.storedAt })
  return { event, type, content, origin, body: letter.body } satisfies Contents
})

/** An endpoint's dead letters, and its earlier redeliveries without an end. */
interface Group {
  readonly tenant: string
  readonly endpoint: string
  readonly rounds: Map<number, Round>
  /** No redelivery of the group began earlier, ms since the epoch. */
  since: number
}

const groupsOf = (letters: ReadonlyArray<DeadLetter>, unended: ReadonlyArray<SentAgain>) => {
  const groups = new Map<string, Group>()
  const add = (
    { endpoint, tenant }: Pick<Delivery, "tenant" | "endpoint">,
    id: number,
    { eventAt, eventSeq }: EventIdentity,
    at: number
  ) => {
    const key = endpointKey(tenant, endpoint)
    const group = groups.get(key) ?? { tenant, endpoint, rounds: new Map(), since: at }
    group.rounds.set(id, { eventSeq, eventAt, round: redeliveryRound(id), dead: id })
    group.since = Math.min(group.since, at)
    groups.set(key, group)
  }
  for (const { deadAt, delivery, id } of letters) add(delivery, id, delivery, deadAt)
  for (const sent of unended) add(sent, sent.id, sent, sent.fate.at)
  return [...groups.values()]
}

/**
 * Plans a redelivery. It skips dead letters that were redelivered before or resolved by a late
 * success, and dead letters of endpoints that accept nothing now.
 */
export const planRedelivery = Effect.fnUntraced(function* (options: RoundsToRedeliver) {
  const { by, held, letters, pace, unended } = options
  const layout = yield* steadyLayout
  const byId = new Map(letters.map((letter) => [letter.id, letter]))
  const isAsked = ({ dead = 0 }: Round) => byId.has(dead)
  const planOne = Effect.fnUntraced(function* (group: Group) {
    const { endpoint, since, tenant } = group
    const { target, unfit } = yield* readTarget(tenant, endpoint)
    const rounds = yield* makeRounds({
      kind: "redelivered",
      target,
      layout,
      by,
      since: since - maxRoundSkewMs,
      pace,
      read: (round) => readLetter(group, round),
      held: (waiting) => held?.(`${tenant}/${endpoint}`, waiting)
    })
    const plan = yield* rounds.plan([...group.rounds.values()])
    const { before, finishing } = plan
    const late = yield* readLateDeliveries({ endpoint: { tenant, id: endpoint } })
    const wanted = plan.fresh.filter(isAsked)
    const fresh = wanted.filter(({ dead = 0 }) => {
      const letter = byId.get(dead)
      return letter === undefined || late(letter.delivery) === undefined
    })
    return {
      tenant,
      endpoint,
      unfit,
      rounds,
      finishing,
      fresh,
      before: before.filter(isAsked).length,
      late: wanted.length - fresh.length
    } satisfies EndpointRedelivery
  })
  return yield* Effect.forEach(groupsOf(letters, unended), planOne, {
    concurrency: maxConcurrentEndpoints
  })
})

/**
 * Redelivers dead letters: same id and bytes, attempts and deadline start anew. Safe to interrupt
 * and to run again: a dead letter is not redelivered twice.
 */
export const redeliver = (
  plan: ReadonlyArray<EndpointRedelivery>,
  done: (round: Round, begun: StartedRound) => void
) =>
  Effect.forEach(
    plan,
    ({ finishing, fresh, rounds, unfit }) =>
      // A claimed round needs an end, so it is stored even if its endpoint accepts nothing.
      rounds.beginAll(unfit === undefined ? [...finishing, ...fresh] : finishing, done),
    { concurrency: maxConcurrentEndpoints, discard: true }
  )
