import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { isConflict, readValues } from "../broker/values.ts"
import { Health } from "../domain/health.ts"
import { eraseHealth, readHealth, writeHealth } from "./health-store.ts"

/** Pause before a failed write is retried, ms. */
const retryPauseMs = 1_000

/** The stored health of one endpoint, as its owner writes it. */
export interface HealthRecord {
  /**
   * Stores the current health (undefined: healthy), however long that takes. Replaces an earlier
   * write that has not started.
   */
  readonly write: (health: Health | undefined) => Effect.Effect<void, never, Broker>
  /**
   * True if no write is pending or in flight. The record may then be dropped; a new one finds the
   * revision itself.
   */
  readonly isIdle: () => boolean
}

/**
 * Makes the record of one endpoint. The owner decides: it overwrites what others have written.
 *
 * @param key from `endpointKey`.
 * @param known the stored revision; 0 if there is none.
 * @param asOwner passes while this worker is owner: a pending write of a former owner is out of
 * date.
 */
export const makeHealthRecord = (
  key: string,
  known: number,
  asOwner: Effect.Effect<void>
): HealthRecord => {
  const [tenant = "", id = ""] = key.split(".")
  let revision = known
  /** True if a failed write may have been stored. */
  let uncertain = false
  let wanted: { readonly health: Health | undefined } | undefined
  let writing = false

  const store = (health: Health | undefined) =>
    health === undefined ? eraseHealth(key, revision) : writeHealth(key, health, revision)

  const lookAgain = readHealth(tenant, id).pipe(
    Effect.map((found) => found.revision),
    Effect.catchTag("HealthUnreadable", (found) => Effect.succeed(found.revision))
  )

  const writeOnce = Effect.fnUntraced(function* (wish: { readonly health: Health | undefined }) {
    if (wish.health === undefined && revision === 0 && !uncertain) return
    yield* asOwner
    const stored = yield* Effect.result(store(wish.health))
    if (stored._tag === "Success") {
      revision = stored.success
      uncertain = false
      return
    }
    uncertain = true
    wanted ??= wish
    const found = isConflict(stored.failure) ? yield* Effect.option(lookAgain) : Option.none()
    if (Option.isSome(found)) revision = found.value
    else yield* Effect.sleep(retryPauseMs)
  })

  const writeAll = Effect.gen(function* () {
    while (wanted !== undefined) {
      const wish = wanted
      wanted = undefined
      yield* writeOnce(wish)
    }
  })

  return {
    isIdle: () => !writing && wanted === undefined,
    write: (health) =>
      Effect.suspend(() => {
        wanted = { health }
        if (writing) return Effect.void
        writing = true
        return Effect.ensuring(
          writeAll,
          Effect.sync(() => {
            writing = false
          })
        )
      })
  }
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Health))

/** A stored health with its key. */
export interface StoredHealth {
  /** From `endpointKey`. */
  readonly key: string
  readonly health: Health
  readonly revision: number
}

/** Lists all stored health. Skips values that do not parse. */
export const listHealth = Effect.gen(function* () {
  const { names } = yield* Broker
  const stored = yield* Stream.runCollect(readValues(names.buckets.health))
  return stored.flatMap(({ key, revision, text }): Array<StoredHealth> => {
    const health = Option.getOrUndefined(decode(text))
    return health === undefined ? [] : [{ key, health, revision }]
  })
})
