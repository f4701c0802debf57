import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { Broker } from "./broker.ts"
import { isConflict, readValue, writeValue } from "./values.ts"

/** Key in the bucket of workers. */
const key = "installation"

/** Returns the id of this installation; undefined where no `petrel init` has given it one. */
export const readInstallation = Effect.gen(function* () {
  const { names } = yield* Broker
  return (yield* readValue(names.buckets.workers, key))?.string()
})

/** Gives the installation an id, unless it has one: it tells it from all others, wherever they are. */
export const noteInstallation = Effect.gen(function* () {
  const { names } = yield* Broker
  if ((yield* readInstallation) !== undefined) return
  const id = yield* Effect.sync(() => randomUUID())
  yield* writeValue(names.buckets.workers, key, id, { expected: 0 }).pipe(
    // Another init has given it one.
    Effect.catchIf(isConflict, () => Effect.void)
  )
})
