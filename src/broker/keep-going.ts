import type { Duration } from "effect"
import { Cause, Effect } from "effect"

/**
 * Repeats a step until it is interrupted. Neither a failure nor a defect ends the repetition: a
 * fiber that nobody waits for would end without a word, and what it does would never be done again.
 *
 * @param what the step does, for the log: `cannot <what>; trying again`.
 * @param pause before the step is tried again.
 * @param failed logs a failure. (Default: at level debug, as while the broker is away)
 */
export const keepGoing = <E, R>(
  what: string,
  step: Effect.Effect<unknown, E, R>,
  pause: Duration.Input,
  failed: (message: string, cause: Cause.Cause<E>) => Effect.Effect<void> = Effect.logDebug
): Effect.Effect<never, never, R> => {
  const message = `cannot ${what}; trying again`
  return step.pipe(
    Effect.catchCause((cause) => {
      if (Cause.hasInterrupts(cause)) return Effect.interrupt
      const log = Cause.hasDies(cause) ? Effect.logError : failed
      return Effect.andThen(log(message, cause), Effect.sleep(pause))
    }),
    Effect.forever
  )
}
