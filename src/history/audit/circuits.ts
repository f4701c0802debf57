import { Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { Health } from "../../domain/health.ts"
import type { Books } from "./books.ts"

/** A difference without consequence for deliveries. */
export interface Remark {
  readonly kind: "health-differs"
  readonly tenant: string
  readonly endpoint: string
  readonly says: string
}

const decodeHealth = Schema.decodeUnknownOption(Schema.fromJsonString(Health))
const decodeEndpoint = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      generation: Schema.String,
      createdAt: Schema.Number,
      disabled: Schema.optionalKey(Schema.Unknown),
      suspended: Schema.optionalKey(Schema.Unknown)
    })
  )
)

/** Reads the values of a bucket, by key. */
const readBucket = Effect.fnUntraced(function* (bucket: string) {
  const { streamInfo } = yield* Broker
  const stream = `KV_${bucket}`
  const prefix = `$KV.${bucket}.`
  const { state } = yield* streamInfo(`look at ${stream}`, stream)
  const values = new Map<string, string>()
  yield* readThrough(
    { stream, subjects: [`${prefix}>`], from: state.first_seq, to: state.last_seq },
    ({ message }) => {
      const key = message.subject.slice(prefix.length)
      if (message.headers?.has("KV-Operation") === true) values.delete(key)
      else values.set(key, message.string())
    }
  )
  return values
})

const compare = Effect.fnUntraced(function* (books: Books) {
  const { names } = yield* Broker
  const { tenant } = books.ledger.scope
  const found: Array<Remark> = []
  if (books.endpoints.size === 0) return found
  const stored = yield* readBucket(names.buckets.health)
  const configured = yield* readBucket(names.buckets.endpoints)
  for (const [key, { circuit }] of books.endpoints) {
    const [owner = "", endpoint = ""] = key.split(".")
    const config = Option.getOrUndefined(decodeEndpoint(configured.get(key)))
    // A removed, disabled, suspended or recreated endpoint starts anew, and not all of that is
    // recorded.
    if (config === undefined || config.disabled !== undefined) continue
    if (config.suspended !== undefined) continue
    if (circuit.since < config.createdAt || (tenant !== undefined && tenant !== owner)) continue
    const health = Option.getOrUndefined(decodeHealth(stored.get(key)))
    const state = health?.generation === config.generation ? health.circuit.state : "closed"
    if (state !== circuit.state)
      found.push({
        kind: "health-differs",
        ...{ tenant: owner, endpoint },
        says: `its circuit is stored as ${state}, and the facts tell that it is ${circuit.state}`
      })
  }
  return found
})

/**
 * Finds endpoints whose stored circuit differs from the facts. Health and fact are written one after
 * the other, so a difference is checked again after a pause (ms). A worker that was killed in between
 * leaves a lasting difference; no delivery depends on it.
 */
export const compareCircuits = Effect.fnUntraced(function* (books: Books, pause: number) {
  const first = yield* compare(books)
  if (first.length === 0) return first
  yield* Effect.sleep(pause)
  yield* books.readHistory
  const second = yield* compare(books)
  return second.filter(({ endpoint, says, tenant }) =>
    first.some(
      (before) => before.tenant === tenant && before.endpoint === endpoint && before.says === says
    )
  )
})
