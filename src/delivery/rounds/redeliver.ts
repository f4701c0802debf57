import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { DeadLetter } from "../../history/dead-letters.ts"
import { getDeadLetter } from "../../history/dead-letters.ts"
import { endpointKey, getEndpoint } from "../endpoints/endpoint-store.ts"
import { windowOf } from "../endpoints/live-endpoint.ts"
import { placeName } from "../lanes/held.ts"
import type { PaceLimits } from "./pace.ts"
import type { Begun, Contents, Round, Rounds, Target } from "./rounds.ts"
import { makeRounds } from "./rounds.ts"
import { steadyLayout } from "./steady-layout.ts"

/** Endpoints whose dead letters are sent again at the same time. */
const atOnce = 8
/** The clocks of the workers and the broker differ by less than this, ms. */
const clockSkew = 24 * 60 * 60_000

/** Why an endpoint gets nothing again. */
export type Unfit = "endpoint-removed" | "endpoint-disabled" | "endpoint-unreadable"

/** What there is to do for one endpoint. */
export interface EndpointRedelivery {
  readonly tenant: string
  readonly endpoint: string
  /** Where it takes nothing: what is `fresh` is left alone. */
  readonly unfit: Unfit | undefined
  /** Never sent again so far. */
  readonly fresh: ReadonlyArray<Round>
  /** Claimed by somebody who died before they were stored. */
  readonly finishing: ReadonlyArray<Round>
  /** Sent again before. */
  readonly before: number
  readonly rounds: Rounds
}

/** What is done where, and who asked for it. */
export interface RedeliveryOptions {
  readonly letters: ReadonlyArray<DeadLetter>
  /** Who asked for it. */
  readonly by: string
  readonly pace?: PaceLimits | undefined
  /** Told how many wait for an endpoint while it holds back, and 0 when it goes on. */
  readonly held?: ((endpoint: string, waiting: number) => void) | undefined
}

/** The round that sending a dead letter again begins: there is one, however often it is asked for. */
export const redeliveryRound = (dead: number): string => `d${dead}`

const readLetter = Effect.fnUntraced(function* ({ dead = 0 }: Round) {
  const { names } = yield* Broker
  const letter = yield* getDeadLetter(dead)
  if (letter === undefined) return undefined
  const { content, event, type } = letter.delivery
  const origin = placeName({ stream: names.dead, seq: dead })
  return { event, type, content, origin, body: letter.body } satisfies Contents
})

/** The endpoint as it is now, and whether it takes anything. */
const targetOf = Effect.fnUntraced(function* (tenant: string, endpoint: string, last: DeadLetter) {
  const { generation, revision } = last.delivery
  const unfit = (why: Unfit) => ({
    target: { tenant, endpoint, generation, revision, window: 0 } satisfies Target,
    unfit: why
  })
  return yield* getEndpoint(tenant, endpoint).pipe(
    Effect.map(({ endpoint: config, revision }) => ({
      target: {
        tenant,
        endpoint,
        generation: config.generation,
        revision,
        window: windowOf(config)
      } satisfies Target,
      unfit: config.disabled === undefined ? undefined : ("endpoint-disabled" as const)
    })),
    Effect.catchTags({
      EndpointNotFound: () => Effect.succeed(unfit("endpoint-removed")),
      EndpointUnreadable: () => Effect.succeed(unfit("endpoint-unreadable"))
    })
  )
})

/**
 * Finds out what there is to do about dead letters that are to be sent again: nothing about those
 * that were, and for endpoints that take nothing now.
 */
export const planRedelivery = Effect.fnUntraced(function* (options: RedeliveryOptions) {
  const { by, held, letters, pace } = options
  const layout = yield* steadyLayout
  const groups = Map.groupBy(letters, ({ delivery }) =>
    endpointKey(delivery.tenant, delivery.endpoint)
  )
  const planOne = Effect.fnUntraced(function* (own: ReadonlyArray<DeadLetter>, last: DeadLetter) {
    const { endpoint, tenant } = last.delivery
    const { target, unfit } = yield* targetOf(tenant, endpoint, last)
    const since = own.reduce((least, { deadAt }) => Math.min(least, deadAt), last.deadAt)
    const rounds = yield* makeRounds({
      kind: "redelivered",
      target,
      layout,
      by,
      since: since - clockSkew,
      pace,
      read: readLetter,
      held: (waiting) => held?.(`${tenant}/${endpoint}`, waiting)
    })
    const wanted = own.map(
      ({ delivery, id }): Round => ({
        eventSeq: delivery.eventSeq,
        round: redeliveryRound(id),
        dead: id
      })
    )
    const plan = yield* rounds.plan(wanted)
    return { tenant, endpoint, unfit, rounds, ...plan } satisfies EndpointRedelivery
  })
  const planned = yield* Effect.forEach(
    groups.values(),
    (own) => {
      const last = own.at(-1)
      return last === undefined ? Effect.undefined : planOne(own, last)
    },
    { concurrency: atOnce }
  )
  return planned.filter((one) => one !== undefined)
})

/**
 * Sends dead letters again: same id and bytes, attempts and deadline begin anew. May be interrupted,
 * and done again: what was sent is not sent twice.
 */
export const redeliver = (
  plan: ReadonlyArray<EndpointRedelivery>,
  done: (round: Round, begun: Begun) => void
) =>
  Effect.forEach(
    plan,
    ({ finishing, fresh, rounds, unfit }) =>
      // What was claimed is stored even where its endpoint takes nothing: its round must have an end.
      rounds.beginAll(unfit === undefined ? [...finishing, ...fresh] : finishing, done),
    { concurrency: atOnce, discard: true }
  )
