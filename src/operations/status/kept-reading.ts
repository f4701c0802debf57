import { Effect, Semaphore } from "effect"
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
 * ask, and who asks again gets the last one at once. Returns what answers.
 *
 * @param read asks much of others: each worker, each stream.
 */
export const keepReading = Effect.fnUntraced(function* <A, E, R>(
  read: Effect.Effect<A, E, R>,
  { askingMs, everyMs, oldestMs }: Keeping
) {
  const oneAtATime = Semaphore.makeUnsafe(1).withPermits(1)
  let known: { readonly value: A; readonly at: number } | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  const ageMs = () => timers.monotonicMs() - (known?.at ?? Number.NEGATIVE_INFINITY)
  const readSince = (maxAgeMs: number) =>
    oneAtATime(
      Effect.suspend(() => {
        if (known !== undefined && ageMs() <= maxAgeMs) return Effect.succeed(known.value)
        const at = timers.monotonicMs()
        return Effect.tap(read, (value) =>
          Effect.sync(() => {
            known = { value, at }
          })
        )
      })
    )
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
