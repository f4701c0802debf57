import { JetStreamApiError } from "@nats-io/jetstream"
import { RequestError, TimeoutError } from "@nats-io/transport-node"
import { Effect, Exit, Scope } from "effect"
import { BrokerError } from "./connection.ts"
import { PublishError } from "./publisher.ts"

/** Pause before the broker is asked again that did not answer, ms. */
const askAgainMs = 500

/** JetStream's status where it cannot do now what it may do later, such as without a leader. */
const unavailable = 503

/**
 * True where nobody answered, or the broker said that it cannot at the moment: so it is while a
 * cluster elects leaders, and not where something is refused or missing.
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
 * Repeats work until it is answered, however long that takes. Says once that it waits, and once that
 * it goes on. What a try has acquired is released before the next one.
 *
 * @param waiting what to say when it begins to wait.
 * @param going what to say when it goes on.
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
