import { Effect, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { writeValue } from "../broker/values.ts"
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

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Health))
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
