import { Effect, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { removeIf } from "../../broker/removal.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import { deliveryId, namesOf, roundKey } from "../../domain/delivery.ts"
import { openClaims } from "../../history/claims.ts"
import { readFates } from "../../history/dead-fates.ts"
import type { DeadLetter } from "../../history/dead-letters.ts"
import { parseDeadLetter } from "../../history/dead-letters.ts"
import type { DeadLetterSelection } from "./dead-letter-selection.ts"
import {
  countReasons,
  ReasonCounts,
  selectDeadLetters,
  selectionProblem
} from "./dead-letter-selection.ts"

/** Dead letters that are removed concurrently. */
const maxConcurrentDiscards = 16

/**
 * Removes dead letters for good. Before each removal, the history records who asked for it. Safe to
 * interrupt and to run again.
 *
 * @param by who asked for it.
 * @param done called after each dead letter.
 */
export const discardDeadLetters = Effect.fnUntraced(function* (
  letters: ReadonlyArray<DeadLetter>,
  by: string,
  done: () => void
) {
  const { names } = yield* Broker
  const remove = ({ delivery, id }: DeadLetter) =>
    removeIf(`remove dead letter ${id}`, names.dead, id, ({ header, seq, subject }) => {
      const letter = parseDeadLetter({ headers: header, seq, subject })
      return letter !== undefined && roundKey(letter.delivery) === roundKey(delivery)
    })
  const groups = Map.groupBy(
    letters,
    ({ delivery }) => `${delivery.tenant}.${delivery.endpoint}`
  ).values()

  const discardOf = Effect.fnUntraced(function* (own: ReadonlyArray<DeadLetter>) {
    const [first] = own
    if (first === undefined) return
    const { endpoint, tenant } = first.delivery
    const since = own.reduce((least, { deadAt }) => Math.min(least, deadAt), first.deadAt)
    const claims = yield* openClaims({
      kind: "discarded",
      target: { tenant, endpoint },
      rounds: new Set(own.map(({ delivery }) => roundKey(delivery))),
      from: { fromTime: since - maxClockSkewMs }
    })
    yield* Effect.forEach(
      own,
      (letter) => {
        const { delivery, id, reason } = letter
        const claimed = claims.claim(
          { ...namesOf(delivery), delivery: deliveryId(delivery), reason, dead: id, by },
          delivery
        )
        return claimed.pipe(
          Effect.andThen(remove(letter)),
          Effect.andThen(Effect.sync(done)),
          Effect.uninterruptible
        )
      },
      { concurrency: maxConcurrentDiscards, discard: true }
    )
  })
  yield* Effect.forEach(groups, discardOf, { concurrency: 4, discard: true })
})

/** What a discard would do. */
export const DiscardPlan = Schema.Struct({
  selected: Schema.Int.annotateKey({ description: "Dead letters that were selected." }),
  discard: Schema.Int.annotateKey({
    description: "How many of them are discarded, in total and by reason."
  }),
  reasons: ReasonCounts,
  waiting: Schema.Int.annotateKey({ description: "Left alone: sent again, and still on the way." }),
  gone: Schema.Int.annotateKey({
    description: "Ids that no longer exist: discarded, or too old and not kept."
  })
})
export type DiscardPlan = typeof DiscardPlan.Type

/** What a discard did. */
const Discarded = Schema.Struct({
  selected: Schema.Int.annotateKey({ description: "Dead letters that were selected." }),
  discarded: Schema.Int.annotateKey({ description: "Dead letters that were discarded." }),
  waiting: Schema.Int,
  gone: Schema.Int
})
type Discarded = typeof Discarded.Type

/** Called as a discard goes on, with the number of those done and of all. */
export type DiscardProgress = (done: number, total: number) => void

/**
 * Plans to remove dead letters for good. `run` carries it out; it is safe to interrupt and to run
 * again.
 */
export const planDiscard = Effect.fnUntraced(function* (selection: DeadLetterSelection) {
  const problem = selectionProblem(selection, "discard")
  if (problem !== undefined) return yield* problem
  const { letters: all, missing } = yield* selectDeadLetters(selection, (letter) => letter)
  const ids = new Set(all.map(({ id }) => id))
  const gone = missing.length
  /** Those that no redelivery still needs: it may have crashed before its deliveries were stored. */
  const free = Effect.map(readFates(selection, { ids }), (fates) =>
    all.filter(({ id }) => fates.get(id)?.outcome !== "waiting")
  )
  const letters = yield* free
  const waiting = all.length - letters.length
  return {
    plan: {
      selected: all.length,
      discard: letters.length,
      reasons: countReasons(letters),
      waiting,
      gone
    } satisfies DiscardPlan,
    /** @param by who asks for it, recorded in the history. */
    run: Effect.fnUntraced(function* (by: string, progress: DiscardProgress = () => {}) {
      // Some may have been sent again since they were planned.
      const now = yield* free
      const planned = new Set(letters.map(({ id }) => id))
      const left = now.filter(({ id }) => planned.has(id))
      let discarded = 0
      progress(0, left.length)
      yield* discardDeadLetters(left, by, () => progress(++discarded, left.length))
      return { selected: all.length, discarded, waiting, gone } satisfies Discarded
    })
  }
})
