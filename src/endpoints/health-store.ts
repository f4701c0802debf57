import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { isConflict, readValues, writeValue } from "../broker/values.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { Health } from "../domain/health.ts"

/** An endpoint's health in the bucket. */
interface HealthEntry {
  /** Undefined if nothing bad is known of the endpoint. */
  readonly health: Health | undefined
  /**
   * The revision that the next write must expect, also after an erase; 0 if nothing was ever
   * stored.
   */
  readonly revision: number
}

/**
 * A stored health that does not parse: something other than Petrel wrote it, or a newer version.
 */
export class HealthUnreadable extends Schema.TaggedError<HealthUnreadable>()("HealthUnreadable", {
  key: Schema.String,
  problem: Schema.String,
  /** The revision to overwrite it by compare-and-set. */
  revision: Schema.Int
}) {
  override get message() {
    return `the health of endpoint ${this.key} does not parse: ${this.problem}`
  }
}

const HealthJson = Schema.fromJsonString(Health)
const decode = Schema.decodeUnknownEffect(HealthJson)
const decodeOption = Schema.decodeUnknownOption(HealthJson)
const encode = Schema.encodeSync(Health)

/** Reads an endpoint's health from the leader. */
export const readHealth = Effect.fnUntraced(function* (
  tenant: string,
  id: string
): Effect.fn.Return<HealthEntry, BrokerError | HealthUnreadable, Broker> {
  const broker = yield* Broker
  const key = endpointKey(tenant, id)
  const entry = yield* broker.entry(broker.names.buckets.health, key)
  if (entry === null) return { health: undefined, revision: 0 }
  const { operation, revision } = entry
  if (operation !== "PUT") return { health: undefined, revision }
  const health = yield* decode(entry.string()).pipe(
    Effect.mapError(
      ({ message }) =>
        new HealthUnreadable({ key, revision, problem: message.replaceAll(/\s*\n\s*/g, " ") })
    )
  )
  return { health, revision }
})

/**
 * Stores an endpoint's health over the expected revision, and returns the new one. If another write
 * was faster, fails with a PublishError for which `isConflict` is true.
 *
 * @param key from `endpointKey`.
 * @param expected 0 if there is none.
 */
export const writeHealth = Effect.fnUntraced(function* (
  key: string,
  health: Health,
  expected: number
) {
  const { names } = yield* Broker
  const value = JSON.stringify(encode(health))
  const { seq } = yield* writeValue(names.buckets.health, key, value, { expected })
  return seq
})

/**
 * Removes an endpoint's health: the endpoint counts as healthy from now on. Returns the revision of
 * the delete marker, which does not expire: if it did, whoever remembers its revision could not
 * write.
 *
 * @param key from `endpointKey`.
 * @param expected the revision to remove. (Default: whichever is there)
 */
export const eraseHealth = Effect.fnUntraced(function* (key: string, expected?: number) {
  const { names, publish } = yield* Broker
  const { seq } = yield* publish(`$KV.${names.buckets.health}.${key}`, "", [
    ["KV-Operation", "PURGE"],
    ["Nats-Rollup", "sub"],
    ...(expected === undefined
      ? []
      : [["Nats-Expected-Last-Subject-Sequence", String(expected)] as const])
  ])
  return seq
})

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
    const health = Option.getOrUndefined(decodeOption(text))
    return health === undefined ? [] : [{ key, health, revision }]
  })
})
