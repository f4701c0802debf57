import { randomUUID } from "node:crypto"
import { Effect, Option, Schema } from "effect"
import { Timestamp } from "../domain/timestamp.ts"
import { Broker } from "./broker.ts"
import { isConflict, readValue, writeValue } from "./values.ts"

/** Keys in the bucket of workers. */
const keys = { id: "installation", restored: "restored" } as const

/** Returns the id of this installation; undefined where no `petrel init` has given it one. */
export const readInstallation = Effect.gen(function* () {
  const { names } = yield* Broker
  return (yield* readValue(names.buckets.workers, keys.id))?.string()
})

/** Gives the installation an id, unless it has one: it tells it from all others, wherever they are. */
export const noteInstallation = Effect.gen(function* () {
  const { names } = yield* Broker
  if ((yield* readInstallation) !== undefined) return
  const id = yield* Effect.sync(() => randomUUID())
  yield* writeValue(names.buckets.workers, keys.id, id, { expected: 0 }).pipe(
    // Another init has given it one.
    Effect.catchIf(isConflict, () => Effect.void)
  )
})

/** That an installation was made of a backup, and what it lacks since. Times in ms since the epoch. */
const Restored = Schema.Struct({
  v: Schema.Literal(1),
  /** The backup's id. */
  backup: Schema.String,
  /** When the last fact of the backup was stored: what was done later is not known. */
  factsUntil: Timestamp,
  /** When the last event of the backup was stored, and its sequence: later ones are not there. */
  eventsUntil: Timestamp,
  lastEvent: Schema.Int,
  at: Timestamp
})
export type Restored = typeof Restored.Type

const Stored = Schema.fromJsonString(Restored)
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeSync(Stored)

/** Returns of which backup this installation was made last; undefined if of none. */
export const readRestored = Effect.gen(function* () {
  const { names } = yield* Broker
  const entry = yield* readValue(names.buckets.workers, keys.restored)
  return Option.getOrUndefined(decode(entry?.string() ?? ""))
})

/** Notes of which backup this installation was made. */
export const noteRestored = Effect.fnUntraced(function* (restored: Omit<Restored, "v">) {
  const { names } = yield* Broker
  yield* writeValue(names.buckets.workers, keys.restored, encode({ v: 1, ...restored }))
})
