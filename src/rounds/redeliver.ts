import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { undroppedSince } from "../broker/kept-since.ts"
import { maxRoundSkewMs } from "../domain/clock-bounds.ts"
import type { Delivery, DeliveryIdentity } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { eventName } from "../domain/event.ts"
import { placeName } from "../domain/fact.ts"
import type { DeadLetter } from "../history/dead-letters.ts"
import { getDeadLetter } from "../history/dead-letters.ts"
import { readLateDeliveries } from "../history/late-deliveries.ts"
import type { BackpressureLimits } from "./backpressure.ts"
import type { Contents, Round, StartedRound, Unfit } from "./round.ts"
import { readTarget, steadyLayout } from "./round.ts"
import type { OpenRounds } from "./rounds.ts"
import { openRounds } from "./rounds.ts"

/** Endpoints whose dead letters are sent again at the same time. */
const maxConcurrentEndpoints = 8

/** The part of a dead letter that a redelivery keeps in memory until it is sent. */
export type RedeliverableLetter = Pick<DeadLetter, "id" | "reason" | "deadAt"> & {
  readonly delivery: DeliveryIdentity
}

/** The redelivery to one endpoint. */
export interface EndpointRedelivery {
  readonly tenant: string
  readonly endpoint: string
  /** Why the endpoint accepts nothing. Its `fresh` dead letters are then skipped. */
  readonly unfit: Unfit | undefined
  /** True if the endpoint is paused or suspended: what is sent waits until it is resumed. */
  readonly waits: boolean
  /** Dead letters that were not redelivered before. */
  readonly fresh: ReadonlyArray<Round>
  /** Rounds that were claimed by a process that died before it stored them. */
  readonly finishing: ReadonlyArray<Round>
  /** The number of dead letters that were redelivered before, by other work. */
  readonly before: number
  /** The number of those that this work has redelivered before it was broken off. */
  readonly own: number
  /** The number of those that a late success of a former owner resolved. */
  readonly late: number
  /** The number of those that a newer dead letter of the same delivery stands for. */
  readonly superseded: number
  /** The part of `fresh` that may have been redelivered before: the history has dropped facts since. */
  readonly unsure: number
  readonly rounds: OpenRounds
}

/** What is redelivered. */
interface RoundsToRedeliver {
  /** As many as may be in memory. */
  readonly letters: ReadonlyArray<RedeliverableLetter>
  /** Who asked for it. */
  readonly by: string
  /** Returns whether a newer dead letter of the same delivery stands for one. (Default: for none) */
  readonly isSuperseded?: ((letter: RedeliverableLetter) => boolean) | undefined
  /** See `RoundsOptions`. */
  readonly ownAfter?: number | undefined
  readonly pace?: BackpressureLimits | undefined
  /** Called with the number of deliveries that wait for an endpoint while throttled, and with 0. */
  readonly held?: ((endpoint: string, waiting: number) => void) | undefined
}

/** Returns the round of a dead letter's redelivery. Each dead letter has one. */
const redeliveryRound = (dead: number): string => `d${dead}`

/** Returns the dead letter of a round; undefined for a round that no redelivery began. */
export const redeliveredLetter = (round: string): number | undefined => {
  const [, digits] = /^d(\d+)$/.exec(round) ?? []
  return digits === undefined ? undefined : Number(digits)
}

/** Reads what a redelivery sends; undefined if the dead letter is gone. */
export const readLetterContents = Effect.fnUntraced(function* (
  { tenant, endpoint }: Pick<Delivery, "tenant" | "endpoint">,
  round: Round
) {
  const { dead = 0 } = round
  const { names } = yield* Broker
  const letter = yield* getDeadLetter(dead)
  if (letter === undefined) return undefined
  const { delivery } = letter
  // Its body was never known.
  if (letter.reason === "event-gone") return undefined
  // If DEAD was truncated, the sequence may hold another dead letter.
  const isIt = delivery.tenant === tenant && delivery.endpoint === endpoint
  if (!isIt || eventName(delivery) !== eventName(round)) return undefined
  const { content, event, type } = delivery
  const origin = placeName({ stream: names.dead, seq: dead, at: letter.storedAt })
  return { event, type, content, origin, body: letter.body } satisfies Contents
})

/** An endpoint's dead letters. */
interface Group {
  readonly tenant: string
  readonly endpoint: string
  readonly letters: Map<number, RedeliverableLetter>
  /** No redelivery of the group began earlier, ms since the epoch. */
  since: number
}

const groupsOf = (letters: ReadonlyArray<RedeliverableLetter>) => {
  const groups = new Map<string, Group>()
  for (const letter of letters) {
    const { endpoint, tenant } = letter.delivery
    const key = endpointKey(tenant, endpoint)
    const since = letter.deadAt
    const group = groups.get(key) ?? { tenant, endpoint, letters: new Map(), since }
    group.letters.set(letter.id, letter)
    group.since = Math.min(group.since, since)
    groups.set(key, group)
  }
  return [...groups.values()]
}

/**
 * Plans a redelivery. It skips dead letters that were redelivered before, resolved by a late success
 * or superseded by a newer one, and dead letters of endpoints that accept nothing now.
 */
export const planRedelivery = Effect.fnUntraced(function* (options: RoundsToRedeliver) {
  const { by, held, isSuperseded = () => false, ownAfter, pace } = options
  const layout = yield* steadyLayout
  const { names, streamInfo } = yield* Broker
  const planOne = Effect.fnUntraced(function* ({ endpoint, letters, since, tenant }: Group) {
    const { target, unfit, waits } = yield* readTarget(tenant, endpoint)
    const rounds = yield* openRounds({
      kind: "redelivered",
      target,
      layout,
      by,
      rounds: [...letters.values()].map(({ delivery: { eventAt, eventSeq }, id }) => {
        const round = redeliveryRound(id)
        return { eventSeq, eventAt, round, dead: id }
      }),
      from: { fromTime: since - maxRoundSkewMs },
      ownAfter,
      pace,
      read: (round) => readLetterContents({ tenant, endpoint }, round),
      held: (waiting) => held?.(`${tenant}/${endpoint}`, waiting)
    })
    const late = yield* readLateDeliveries({ endpoint: { tenant, id: endpoint } })
    const unresolved = rounds.fresh.filter(({ dead = 0 }) => {
      const letter = letters.get(dead)
      return letter === undefined || late(letter.delivery) === undefined
    })
    const fresh = unresolved.filter(({ dead = 0 }) => {
      const letter = letters.get(dead)
      return letter === undefined || !isSuperseded(letter)
    })
    // Looked up after the claims were read: the history may drop some meanwhile.
    const knownSince = undroppedSince(yield* streamInfo("look at the history", names.history))
    return {
      tenant,
      endpoint,
      unfit,
      waits,
      rounds,
      finishing: rounds.finishing,
      fresh,
      before: rounds.before.length,
      own: rounds.own.length,
      late: rounds.fresh.length - unresolved.length,
      superseded: unresolved.length - fresh.length,
      unsure: fresh.filter(({ dead = 0 }) => (letters.get(dead)?.deadAt ?? 0) < knownSince).length
    } satisfies EndpointRedelivery
  })
  return yield* Effect.forEach(groupsOf(options.letters), planOne, {
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
