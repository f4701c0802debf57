import { JetStreamApiError } from "@nats-io/jetstream"
import { RequestError, TimeoutError } from "@nats-io/transport-node"
import { Effect, Exit, Scope } from "effect"
import { BrokerError } from "./broker-error.ts"
import { PublishError } from "./publisher.ts"

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
