import { Effect, Schema } from "effect"
import { readFates } from "../../history/dead-fates.ts"
import { discardDeadLetters as discard } from "../../history/discard.ts"
import type { DeadLetterSelection } from "./dead-letter-selection.ts"
import {
  countReasons,
  ReasonCounts,
  selectDeadLetters,
  selectionProblem
} from "./dead-letter-selection.ts"

/** What a discard would do. */
export const DiscardPlan = Schema.Struct({
  selected: Schema.Int,
  /** How many of them are discarded, in all and by reason. */
  discard: Schema.Int,
  reasons: ReasonCounts,
  /** Left alone: sent again, and on the way still. */
  waiting: Schema.Int,
  /** Ids that do not exist any more: discarded, or too old and not kept. */
  gone: Schema.Int
})
export type DiscardPlan = typeof DiscardPlan.Type

/** What a discard did. */
const Discarded = Schema.Struct({
  selected: Schema.Int,
  discarded: Schema.Int,
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
      yield* discard(left, by, () => progress(++discarded, left.length))
      return { selected: all.length, discarded, waiting, gone } satisfies Discarded
    })
  }
})
