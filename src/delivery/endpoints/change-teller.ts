import { Effect, Schedule } from "effect"
import type { Broker } from "../../broker/connection.ts"
import { appendChangeSurely, changeId, lastChangeIds } from "../../history/configuration.ts"
import type { Stored } from "./endpoint-changes.ts"
import { named, readChange } from "./endpoint-changes.ts"

const retryPause = Schedule.spaced("1 second")

/** Tells the history of changes that a worker sees in the endpoints bucket. */
export interface ChangeTeller {
  /** True where the history had it before the worker began. */
  readonly isKnown: (key: string, stored: Stored) => boolean
  /** Waits until the history has it, however long that takes. */
  readonly tell: (key: string, stored: Stored) => Effect.Effect<void>
  /** Lets go of what is needed for {@link isKnown} only. */
  readonly forget: () => void
}

/**
 * Reads which changes the history has. Whoever wrote to the bucket tells of it, too; but may have died
 * in between, or be a person with a tool of the broker's.
 */
export const makeChangeTeller = Effect.gen(function* () {
  const context = yield* Effect.context<Broker>()
  let known = yield* Effect.retry(lastChangeIds, retryPause)
  const teller: ChangeTeller = {
    isKnown: (key, { at, revision }) => known.has(changeId(key, revision, at)),
    tell: (key, stored) =>
      readChange(key, stored.revision).pipe(
        Effect.retry(retryPause),
        Effect.orDie,
        Effect.flatMap((change) => appendChangeSurely(change ?? named(key, stored))),
        Effect.provideContext(context)
      ),
    forget: () => {
      known = new Set()
    }
  }
  return teller
})
