import { Clock, Effect, Option, Schema, Stream } from "effect"
import { inAccess } from "../../broker/access.ts"
import { Broker } from "../../broker/broker.ts"
import { readUser } from "../../broker/user.ts"
import { eraseValue, isConflict, readValue, readValues, writeValue } from "../../broker/values.ts"
import { isToken, nobody } from "../../domain/token.ts"
import { appendFact } from "../../history/facts.ts"
import { TokenRecord, type TokenView } from "./token.ts"

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

/** Stores a token in the place of another one with its id. Returns false if that is there no more. */
export const replaceToken = Effect.fnUntraced(function* (before: TokenRecord, after: TokenRecord) {
  const { names } = yield* Broker
  const bucket = names.buckets.tokens
  const entry = yield* readValue(bucket, before.id)
  const stored = entry === undefined ? undefined : decodeToken(before.id, entry.string())
  if (entry === undefined || stored?.hash !== before.hash) return false
  return yield* writeValue(bucket, before.id, encode(after), { expected: entry.revision }).pipe(
    Effect.as(true),
    Effect.catchIf(isConflict, () => Effect.succeed(false))
  )
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

/**
 * Appends that a token was made or revoked. A token of all tenants belongs to none.
 *
 * @param reason why it was revoked, if not for itself.
 */
export const appendTokenFact = Effect.fnUntraced(function* (
  kind: "token-created" | "token-revoked",
  { brand: _, by: __, createdAt: ___, opensUntil: ____, tenant, ...token }: TokenView,
  by: string,
  reason?: string
) {
  const at = yield* Clock.currentTimeMillis
  const user = yield* readUser
  const whose = { tenant: isToken(tenant) ? tenant : nobody, endpoint: nobody }
  yield* appendFact({ v: 1, kind, at, ...whose, token, by, user, reason }, `${kind}.${token.id}`)
})
