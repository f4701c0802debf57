import { Deferred, Effect } from "effect"
import { elapsedMs } from "./elapsed.ts"
import type { PublishError } from "./publisher.ts"

/** Pause between tries to store what the broker does not take, ms. */
const retryPauseMs = 500

/** Stores messages however long it takes, and tells whether the broker takes any. */
export interface Gate {
  /** Repeats the publish (give it a `Nats-Msg-Id`) until the broker has acknowledged it. */
  readonly untilStored: <A>(publish: Effect.Effect<A, PublishError>) => Effect.Effect<A>
  /**
   * The same, but fails when it has taken longer than `limit` ms: what may have been stored at the
   * first try must not be stored again once the broker has forgotten its `Nats-Msg-Id`.
   */
  readonly within: <A>(
    limit: number,
    publish: Effect.Effect<A, PublishError>
  ) => Effect.Effect<A, PublishError>
  /** True while nothing is being refused, and nobody waits to be told of it: a plain publish does. */
  readonly isHealthy: () => boolean
  /** True while nothing is being refused. */
  readonly isOpen: () => boolean
  /** Waits until nothing is being refused; at once while nothing is. */
  readonly ready: Effect.Effect<void>
}

/**
 * A gate that says once when it closes and once when it opens again, however many messages wait.
 *
 * @param closed what to say when the broker refuses or does not answer.
 * @param opened what to say when it has taken all that waited.
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
  /** Also where waiting was given up: it says nothing then, for nothing has been stored. */
  const reopen = Effect.suspend(() =>
    --refused > 0 ? Effect.void : Deferred.succeed(opening, undefined)
  )
  const logOpened = Effect.suspend(() => {
    if (refused > 0 || !isLogged) return Effect.void
    isLogged = false
    return Effect.logInfo(opened)
  })

  const insist = <A>(
    publish: Effect.Effect<A, PublishError>,
    until: number
  ): Effect.Effect<A, PublishError> =>
    Effect.catch(Effect.delay(publish, retryPauseMs), (error) =>
      elapsedMs() > until ? Effect.fail(error) : insist(publish, until)
    )

  const within = <A>(
    limit: number,
    publish: Effect.Effect<A, PublishError>
  ): Effect.Effect<A, PublishError> =>
    Effect.suspend(() => {
      const until = elapsedMs() + limit
      const stored = Effect.catch(publish, (error) =>
        Effect.acquireUseRelease(
          close(error),
          () => insist(publish, until),
          () => reopen
        ).pipe(Effect.tap(logOpened))
      )
      return isLogged ? Effect.tap(stored, logOpened) : stored
    })

  return {
    within,
    untilStored: (publish) => Effect.orDie(within(Number.POSITIVE_INFINITY, publish)),
    isHealthy: () => refused === 0 && !isLogged,
    isOpen: () => refused === 0,
    ready: Effect.suspend(() => (refused === 0 ? Effect.void : Deferred.await(opening)))
  }
}

/** Says once when work begins to fail and once when it succeeds again, and changes nothing else. */
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
