import { Cause, Effect, Schedule } from "effect"

/** Pause between tries to load the raised alerts, ms. */
const retryPauseMs = 1_000

/**
 * Looks at an interval (ms) once `load` has succeeded, for as long as the scope lives. Logs a look
 * that fails, and continues with the next.
 */
export const lookAgainAndAgain = <E1, E2, R1, R2>(
  load: Effect.Effect<void, E1, R1>,
  look: Effect.Effect<void, E2, R2>,
  every: number
) => {
  const guarded = look.pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) => Effect.logWarning("alerts could not be judged; trying again", cause)
    )
  )
  return load.pipe(
    Effect.retry(Schedule.spaced(retryPauseMs)),
    Effect.andThen(Effect.forever(Effect.andThen(guarded, Effect.sleep(every)))),
    Effect.forkScoped
  )
}
