import { JetStreamApiError } from "@nats-io/jetstream"
import { RequestError, TimeoutError } from "@nats-io/transport-node"
import type { Duration } from "effect"
import { Cause, Effect, Exit, Scope } from "effect"
import { BrokerError } from "./broker-error.ts"
import { PublishError } from "./publication.ts"

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

/** Pause before an unanswered request is repeated, ms. */
const askAgainMs = 500

/** JetStream's status for a temporary failure, such as no leader. */
const unavailable = 503

/**
 * True if there was no answer, or the broker reported a temporary failure, as while a cluster
 * elects leaders. False if a request was rejected or something is missing.
 */
export const isUnanswered = (error: unknown): boolean => {
  if (error instanceof PublishError)
    return error.reason === "timeout" || error.reason === "no-stream"
  if (!(error instanceof BrokerError)) return false
  const { cause } = error
  if (cause instanceof JetStreamApiError) return cause.status === unavailable
  return cause instanceof TimeoutError || (cause instanceof RequestError && cause.isNoResponders())
}

/**
 * Repeats work until it is answered, however long that takes. Logs once when it begins to wait and
 * once when it succeeds. Releases what an attempt has acquired before the next one.
 *
 * @param waiting logged when it begins to wait.
 * @param going logged when it succeeds.
 */
export const untilAnswered = <A, E, R>(
  waiting: string,
  going: string,
  work: Effect.Effect<A, E, R>
) =>
  Effect.suspend(() => {
    let said = false
    const once = Effect.gen(function* () {
      const scope = yield* Scope.fork(yield* Effect.scope)
      return yield* work.pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
    })
    const patient: typeof once = Effect.catch(once, (error) => {
      if (!isUnanswered(error)) return Effect.fail(error)
      const say = said
        ? Effect.void
        : Effect.logWarning(waiting, { why: error instanceof Error ? error.message : "" })
      said = true
      return say.pipe(Effect.andThen(Effect.sleep(askAgainMs)), Effect.andThen(patient))
    })
    return Effect.tap(patient, () => (said ? Effect.logInfo(going) : Effect.void))
  })
