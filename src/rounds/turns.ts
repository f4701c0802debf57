import { Context, Effect } from "effect"
import { timers } from "../time/timers.ts"

/** Longest time that long work goes on while others wait for their turn, ms. */
const turnMs = 1_000

/**
 * Who may select and send rounds now. Where several do that in one process, they take turns; by
 * default nobody waits.
 */
export const Turns = Context.Reference<{
  /** Waits until it is one's turn. */
  readonly take: Effect.Effect<void>
  readonly giveBack: Effect.Effect<void>
}>("petrel/rounds/Turns", { defaultValue: () => ({ take: Effect.void, giveBack: Effect.void }) })

/** Makes what takes turns with others, until the scope closes. Its effects do not run concurrently. */
export const makeTurn = Effect.gen(function* () {
  const turns = yield* Turns
  let takenAt: number | undefined
  const giveBack = Effect.suspend(() => {
    if (takenAt === undefined) return Effect.void
    takenAt = undefined
    return turns.giveBack
  })
  const take = Effect.uninterruptibleMask((restore) =>
    Effect.andThen(
      restore(turns.take),
      Effect.sync(() => {
        takenAt = timers.monotonicMs()
      })
    )
  )
  yield* Effect.addFinalizer(() => giveBack)
  return {
    /** Goes on in this turn or, once it is over, in the next. */
    next: Effect.suspend(() =>
      takenAt !== undefined && timers.monotonicMs() - takenAt < turnMs
        ? Effect.void
        : Effect.andThen(giveBack, take)
    ),
    /** Lets others have their turn while this one waits for something else. */
    giveBack
  }
})

/** Runs a piece of long work in one turn. */
export const inOneTurn = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.flatMap(makeTurn, ({ next }) => Effect.andThen(next, work)))
