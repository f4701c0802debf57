import { Effect, Option, Schema, Stream } from "effect"
import { inAccess } from "../../broker/access.ts"
import { Broker } from "../../broker/broker.ts"
import { eraseValue, readValue, readValues, writeValue } from "../../broker/values.ts"
import { TokenRecord } from "./token.ts"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(TokenRecord))
const encode = Schema.encodeSync(Schema.fromJsonString(TokenRecord))

/** Decodes a value of the tokens bucket; undefined for one that is none of its key. */
export const decodeToken = (key: string, text: string): TokenRecord | undefined =>
  Option.getOrUndefined(Option.filter(decode(text), ({ id }) => id === key))

/** Stores a new token. */
export const storeToken = Effect.fnUntraced(function* (record: TokenRecord) {
  const { names } = yield* Broker
  yield* writeValue(names.buckets.tokens, record.id, encode(record), { expected: 0 })
}, inAccess)

/** Reads a token from the leader; undefined if there is none. */
export const readToken = Effect.fnUntraced(function* (id: string) {
  const { names } = yield* Broker
  const entry = yield* readValue(names.buckets.tokens, id)
  return entry === undefined ? undefined : decodeToken(id, entry.string())
}, inAccess)

/** Removes a token for good. */
export const eraseToken = Effect.fnUntraced(function* (id: string) {
  const { names } = yield* Broker
  yield* eraseValue(names.buckets.tokens, id)
}, inAccess)

/** Reads all tokens, oldest first. */
export const readTokens = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.tokens))
  return values
    .flatMap(({ key, text }) => decodeToken(key, text) ?? [])
    .toSorted((a, b) => a.createdAt - b.createdAt)
}).pipe(inAccess)
