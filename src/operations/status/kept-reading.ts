import { Effect, Exit, Semaphore } from "effect"
import { timers } from "../../time/timers.ts"

/** How long what was read is kept, and for whom it is read again, ms. */
interface Keeping {
  /** How often it is read while somebody asks. */
  readonly everyMs: number
  /** What is older is not answered: nobody asked before, or a reading takes longer than usual. */
  readonly oldestMs: number
  /** Who has not asked for so long does not ask any more. */
  readonly askingMs: number
}

/**
 * Reads again and again while it is asked for, until the scope closes: one reading serves all who
 * ask, and who asks again gets the last one at once. A reading that fails does so for all who wait: one
 * after the other, each of them would wait for a time-out of its own. Returns what answers.
 *
 * @param read asks much of others: each worker, each stream.
 */
export const keepReading = Effect.fnUntraced(function* <A, E, R>(
  read: Effect.Effect<A, E, R>,
  { askingMs, everyMs, oldestMs }: Keeping
) {
  const oneAtATime = Semaphore.makeUnsafe(1).withPermits(1)
  let known: { readonly value: A; readonly at: number } | undefined
  let failed: { readonly exit: Exit.Failure<A, E>; readonly at: number } | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  const ageMs = () => timers.monotonicMs() - (known?.at ?? Number.NEGATIVE_INFINITY)
  const readSince = (maxAgeMs: number) => {
    const cameAt = timers.monotonicMs()
    return oneAtATime(
      Effect.suspend(() => {
        if (known !== undefined && ageMs() <= maxAgeMs) return Effect.succeed(known.value)
        if (failed !== undefined && failed.at > cameAt) return failed.exit
        const at = timers.monotonicMs()
        return Effect.onExit(read, (exit) =>
          Effect.sync(() => {
            if (Exit.isSuccess(exit)) known = { value: exit.value, at }
            // Who is interrupted says nothing about the others.
            else if (!Exit.hasInterrupts(exit)) failed = { exit, at: timers.monotonicMs() }
          })
        )
      })
    )
  }
  const again = Effect.suspend(() =>
    timers.monotonicMs() - askedAt > askingMs ? Effect.void : Effect.ignore(readSince(everyMs / 2))
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(everyMs), again)))
  return Effect.suspend(() => {
    askedAt = timers.monotonicMs()
    return known !== undefined && ageMs() <= oldestMs
      ? Effect.succeed(known.value)
      : readSince(oldestMs)
  })
})
