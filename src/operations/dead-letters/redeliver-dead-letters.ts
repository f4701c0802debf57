import { Effect, Schema } from "effect"
import { readUnended } from "../../history/dead-fates.ts"
import type { EndpointRedelivery } from "../../rounds/redeliver.ts"
import { planRedelivery as planRounds, redeliver } from "../../rounds/redeliver.ts"
import type { RoundCounts, StartedRound } from "../../rounds/round.ts"
import type { DeadLetterSelection } from "./dead-letter-selection.ts"
import {
  countReasons,
  ReasonCounts,
  selectDeadLetters,
  selectionProblem
} from "./dead-letter-selection.ts"

const left = {
  /** Sent again before. */
  before: Schema.Int,
  /** Delivered late, so that the receiver has them. */
  deliveredLate: Schema.Int,
  /** Endpoints that take nothing now, with the number of their dead letters. */
  skipped: Schema.Array(
    Schema.Struct({
      /** `<tenant>/<endpoint>` */
      endpoint: Schema.String,
      why: Schema.Literals(["endpoint-removed", "endpoint-disabled", "endpoint-unreadable"]),
      count: Schema.Int
    })
  )
}

/** What is left alone by a redelivery. */
export const LeftAlone = Schema.Struct(left)
export type LeftAlone = typeof LeftAlone.Type

/** What a redelivery would do. */
export const RedeliveryPlan = Schema.Struct({
  selected: Schema.Int,
  /** How many of them are sent, in all and by reason. */
  redeliver: Schema.Int,
  reasons: ReasonCounts,
  ...left
})
export type RedeliveryPlan = typeof RedeliveryPlan.Type

/** What a redelivery did. */
export const Redelivered = Schema.Struct({
  selected: Schema.Int,
  redelivered: Schema.Int,
  /** Discarded, or too old and not kept any more. */
  gone: Schema.Int,
  ...left
})
export type Redelivered = typeof Redelivered.Type

/** How a redelivery is watched. */
export interface RedeliveryOptions {
  /** Who asks for it, recorded in the history. */
  readonly by: string
  /** Called with the number of deliveries that wait for an endpoint while it is throttled, and 0. */
  readonly held?: ((endpoint: string, waiting: number) => void) | undefined
}

const leftAlone = (plan: ReadonlyArray<EndpointRedelivery>): LeftAlone => ({
  before: plan.reduce((sum, one) => sum + one.before, 0),
  deliveredLate: plan.reduce((sum, one) => sum + one.late, 0),
  skipped: plan.flatMap(({ endpoint, fresh, tenant, unfit }) =>
    unfit === undefined || fresh.length === 0
      ? []
      : [{ endpoint: `${tenant}/${endpoint}`, why: unfit, count: fresh.length }]
  )
})

/** Returns the ids of the dead letters that a plan sends. */
const idsIn = (plan: ReadonlyArray<EndpointRedelivery>): ReadonlySet<number | undefined> =>
  new Set(
    plan
      .flatMap(({ finishing, fresh, unfit }) => [
        ...(unfit === undefined ? fresh : []),
        ...finishing
      ])
      .map(({ dead }) => dead)
  )

/**
 * Plans to send dead letters again, each once: attempts and deadline begin anew. `run` carries it
 * out; it is safe to interrupt and to run again.
 */
export const planRedelivery = Effect.fnUntraced(function* (
  selection: DeadLetterSelection,
  { by, held }: RedeliveryOptions
) {
  const problem = selectionProblem(selection, "send again")
  if (problem !== undefined) return yield* problem
  const unended = yield* readUnended(selection)
  const letters = yield* selectDeadLetters(selection, (id) => unended.some((one) => one.id === id))
  const rounds = yield* planRounds({ letters, unended, by, held })
  const sending = idsIn(rounds)
  const others = leftAlone(rounds)
  return {
    plan: {
      selected: letters.length,
      redeliver: sending.size,
      reasons: countReasons(letters.filter(({ id }) => sending.has(id))),
      ...others
    } satisfies RedeliveryPlan,
    /** @param progress called after each round. */
    run: Effect.fnUntraced(function* (progress: (counts: RoundCounts) => void = () => {}) {
      const counts: Record<StartedRound, number> = { begun: 0, finished: 0, before: 0, gone: 0 }
      yield* redeliver(rounds, (_, begun) => {
        counts[begun]++
        progress(counts)
      })
      return {
        selected: letters.length,
        redelivered: counts.begun + counts.finished,
        gone: counts.gone,
        ...others
      } satisfies Redelivered
    })
  }
})
