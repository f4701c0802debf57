import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/connection.ts"
import { isConflict, readValues } from "../broker/values.ts"
import { Health } from "../domain/health.ts"
import { eraseHealth, readHealth, writeHealth } from "./health-store.ts"

/** Pause before a write that failed is tried again, ms. */
const retryPauseMs = 1_000

/** The health of one endpoint in the bucket, as its owner writes it. */
export interface HealthRecord {
  /**
   * Stores what the health is now (undefined: well), however long that takes; what was to be stored
   * before and is not yet, is left out.
   */
  readonly write: (health: Health | undefined) => Effect.Effect<void, never, Broker>
  /** Nothing is being stored or is to be: another may take its place, and finds the revision itself. */
  readonly isIdle: () => boolean
}

/**
 * The owner decides what stands there: where somebody else has written, it writes over it.
 *
 * @param key from `endpointKey`.
 * @param known the revision that is there; 0 where there is none.
 * @param asOwner passes while this worker is owner, and no later: what a former one could not store
 * is out of date.
 */
export const makeHealthRecord = (
  key: string,
  known: number,
  asOwner: Effect.Effect<void>
): HealthRecord => {
  const [tenant = "", id = ""] = key.split(".")
  let revision = known
  /** A write whose end nobody knows may have been stored. */
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

/** A health as it is stored. */
export interface StoredHealth {
  /** As `endpointKey` makes it. */
  readonly key: string
  readonly health: Health
  readonly revision: number
}

/** Every health that is stored. One that nobody can read is passed over. */
export const listHealth = Effect.gen(function* () {
  const { names } = yield* Broker
  const stored = yield* Stream.runCollect(readValues(names.buckets.health))
  return stored.flatMap(({ key, revision, text }): Array<StoredHealth> => {
    const health = Option.getOrUndefined(decode(text))
    return health === undefined ? [] : [{ key, health, revision }]
  })
})
