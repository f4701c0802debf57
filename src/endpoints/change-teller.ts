import { Effect, Schedule } from "effect"
import type { Broker } from "../broker/connection.ts"
import { isEndpointKey } from "../domain/endpoint.ts"
import type { LastChanges } from "../history/configuration.ts"
import { appendChangeSurely, readLastChanges } from "../history/configuration.ts"
import type { Stored } from "./endpoint-changes.ts"
import { named, readChange } from "./endpoint-changes.ts"

const retryPause = Schedule.spaced("1 second")

/** Tells the history of changes that a worker sees in the endpoints bucket. */
export interface ChangeTeller {
  /** What the history has. */
  readonly known: Effect.Effect<LastChanges>
  /** Waits until the history has it, however long that takes; not for what cannot be an endpoint. */
  readonly tell: (key: string, stored: Stored) => Effect.Effect<void>
}

/**
 * Makes what tells of changes. Whoever writes to the bucket tells of it, too; but may have died in
 * between, or be a person with a tool of the broker's.
 */
export const makeChangeTeller = Effect.gen(function* () {
  const context = yield* Effect.context<Broker>()
  const teller: ChangeTeller = {
    known: readLastChanges.pipe(
      Effect.retry(retryPause),
      Effect.orDie,
      Effect.provideContext(context)
    ),
    tell: (key, stored) =>
      isEndpointKey(key)
        ? readChange(key, stored.revision).pipe(
            Effect.retry(retryPause),
            Effect.orDie,
            Effect.flatMap((change) => appendChangeSurely(change ?? named(key, stored))),
            Effect.provideContext(context)
          )
        : Effect.void
  }
  return teller
})
