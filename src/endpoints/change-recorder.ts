import { Effect, Schedule } from "effect"
import type { Broker } from "../broker/broker.ts"
import { isEndpointKey } from "../domain/endpoint.ts"
import type { LastChanges } from "../history/configuration.ts"
import { appendChangeSurely, readLastChanges } from "../history/configuration.ts"
import type { Stored } from "./endpoint-changes.ts"
import { named, readChange } from "./endpoint-changes.ts"

const retryPause = Schedule.spaced("1 second")

/** Appends changes that a worker sees in the endpoints bucket to the history. */
export interface ChangeRecorder {
  /** Reads the last change of each endpoint that the history has. */
  readonly known: Effect.Effect<LastChanges>
  /**
   * Waits until the history has the change, however long that takes. Ignores keys that cannot be an
   * endpoint.
   */
  readonly record: (key: string, stored: Stored) => Effect.Effect<void>
}

/**
 * Makes a change recorder. Whoever writes to the bucket appends the change too, but may have died in
 * between, or be a person with a command-line tool of the broker.
 */
export const makeChangeRecorder = Effect.gen(function* () {
  const context = yield* Effect.context<Broker>()
  const recorder: ChangeRecorder = {
    known: readLastChanges.pipe(
      Effect.retry(retryPause),
      Effect.orDie,
      Effect.provideContext(context)
    ),
    record: (key, stored) =>
      isEndpointKey(key)
        ? readChange(key, stored.revision).pipe(
            Effect.retry(retryPause),
            Effect.orDie,
            Effect.flatMap((change) => appendChangeSurely(change ?? named(key, stored))),
            Effect.provideContext(context)
          )
        : Effect.void
  }
  return recorder
})
