import { Deferred, Effect } from "effect"
import { elapsedMs } from "../time/elapsed.ts"
import type { PublishError } from "./publication.ts"

/** Pause between attempts to store a message that the broker does not accept, ms. */
const retryPauseMs = 500

const isRefusal = ({ reason }: PublishError): boolean => reason === "rejected"

/** Retries publishes until they are stored, and reports whether the broker accepts any. */
export interface Gate {
  /**
   * Repeats the publish until the broker has acknowledged it. The publish needs a `Nats-Msg-Id`.
   */
  readonly untilStored: <A>(publish: Effect.Effect<A, PublishError>) => Effect.Effect<A>
  /**
   * Like `untilStored`, but fails after `limit` ms: the first attempt may have stored the message,
   * and it must not be stored again once the broker has forgotten its `Nats-Msg-Id`.
   */
  readonly within: <A>(
    limit: number,
    publish: Effect.Effect<A, PublishError>
  ) => Effect.Effect<A, PublishError>
  /**
   * Like `within`, but a refusal fails at once and does not close the gate. For a message that the
   * broker may refuse for its size, while it stores the small ones that the gate is about.
   */
  readonly unlessRefused: <A>(
    limit: number,
    publish: Effect.Effect<A, PublishError>
  ) => Effect.Effect<A, PublishError>
  /**
   * True while no publish fails and no logged failure awaits its recovery message. A plain publish
   * may then be used instead of the gate.
   */
  readonly isHealthy: () => boolean
  /** True while no publish fails. */
  readonly isOpen: () => boolean
  /** While a publish fails: what was logged when the gate closed. Otherwise undefined. */
  readonly problem: () => string | undefined
  /** Waits until no publish fails; returns at once if none does. */
  readonly ready: Effect.Effect<void>
}

/**
 * Makes a gate that logs once when it closes and once when it opens again, however many messages
 * wait.
 *
 * @param closed logged when the broker refuses a message or does not answer.
 * @param opened logged when it has stored all waiting messages.
 */
export const makeGate = (closed: string, opened: string): Gate => {
  let refused = 0
  let isLogged = false
  let opening = Deferred.makeUnsafe<void>()

  const close = (error: PublishError) =>
    Effect.suspend(() => {
      if (refused++ === 0) opening = Deferred.makeUnsafe()
      if (isLogged) return Effect.void
      isLogged = true
      return Effect.logWarning(closed, { why: error.message })
    })
  /** Also runs for a publish that gave up; `logOpened` does not, since nothing was stored. */
  const reopen = Effect.suspend(() =>
    --refused > 0 ? Effect.void : Deferred.succeed(opening, undefined)
  )
  const logOpened = Effect.suspend(() => {
    if (refused > 0 || !isLogged) return Effect.void
    isLogged = false
    return Effect.logInfo(opened)
  })

  /** Asks again after the pause whether to retry: the machine may have been suspended meanwhile. */
  const insist = <A>(
    publish: Effect.Effect<A, PublishError>,
    error: PublishError,
    isRetried: (error: PublishError) => boolean
  ): Effect.Effect<A, PublishError> => {
    const again = Effect.suspend(() =>
      isRetried(error)
        ? Effect.catch(publish, (next) => insist(publish, next, isRetried))
        : Effect.fail(error)
    )
    return isRetried(error) ? Effect.delay(again, retryPauseMs) : Effect.fail(error)
  }

  /** @param isFinal returns true for a failure that no retry follows. */
  const store = <A>(
    limit: number,
    publish: Effect.Effect<A, PublishError>,
    isFinal: (error: PublishError) => boolean
  ): Effect.Effect<A, PublishError> =>
    Effect.suspend(() => {
      const until = elapsedMs() + limit
      const isRetried = (error: PublishError) => !isFinal(error) && elapsedMs() <= until
      const stored = Effect.catchIf(
        publish,
        (error) => !isFinal(error),
        (error) =>
          Effect.acquireUseRelease(
            close(error),
            () => insist(publish, error, isRetried),
            () => reopen
          ).pipe(Effect.tap(logOpened))
      )
      return isLogged ? Effect.tap(stored, logOpened) : stored
    })
  const within: Gate["within"] = (limit, publish) => store(limit, publish, () => false)

  return {
    within,
    unlessRefused: (limit, publish) => store(limit, publish, isRefusal),
    untilStored: (publish) => Effect.orDie(within(Number.POSITIVE_INFINITY, publish)),
    isHealthy: () => refused === 0 && !isLogged,
    isOpen: () => refused === 0,
    problem: () => (refused === 0 ? undefined : closed),
    ready: Effect.suspend(() => (refused === 0 ? Effect.void : Deferred.await(opening)))
  }
}

/** Logs once when work begins to fail and once when it succeeds again. Changes nothing else. */
export const logTransitions = (failing: string, working: string) => {
  let said = false
  return <A, R>(work: Effect.Effect<A, PublishError, R>): Effect.Effect<A, PublishError, R> =>
    work.pipe(
      Effect.tapError((error) => {
        if (said) return Effect.void
        said = true
        return Effect.logWarning(failing, { why: error.message })
      }),
      Effect.tap(() => {
        if (!said) return Effect.void
        said = false
        return Effect.logInfo(working)
      })
    )
}
