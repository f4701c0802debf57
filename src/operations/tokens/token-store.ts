import { Clock, Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { accessConnection, inAccess } from "../../broker/access.ts"
import { Broker } from "../../broker/broker.ts"
import type { FollowedEntries } from "../../broker/bucket-follow.ts"
import { followBucket } from "../../broker/bucket-follow.ts"
import { Reservations } from "../../broker/reservations.ts"
import { readUser } from "../../broker/user.ts"
import { eraseValue, isConflict, readValue, readValues, writeValue } from "../../broker/values.ts"
import { isToken, nobody } from "../../domain/token.ts"
import { appendFact } from "../../history/facts.ts"
import { countText } from "../../text/quantities.ts"
import { timers } from "../../time/timers.ts"
import type { Asker } from "../caller.ts"
import type { AnyNewToken, TokenScope, TokenView } from "../token.ts"
import { defaultTokenRate, isTokenOf, TokenRecord, tokenIdOf } from "../token.ts"

/** Tokens that are made with each other, at most: each request looks at all before its own. */
const maxLine = 8

/**
 * Returns the token that a token was made with, the one before that, and so on; undefined if one of
 * them is not there any more. What was made with a revoked token is revoked with it.
 *
 * @param get returns a token that is stored.
 */
export const lineOf = (
  { parent }: Pick<TokenView, "parent">,
  get: (id: string) => TokenRecord | undefined
): ReadonlyArray<TokenRecord> | undefined => {
  const line: Array<TokenRecord> = []
  for (let id = parent; id !== undefined; id = line.at(-1)?.parent) {
    const record = get(id)
    if (record === undefined || line.length > maxLine) return undefined
    line.push(record)
  }
  return line
}

/** Returns the tokens that were made with one, and with those, among all. */
export const madeWith = (
  id: string,
  all: ReadonlyArray<TokenRecord>
): ReadonlyArray<TokenRecord> => {
  const children = Map.groupBy(all, ({ parent }) => parent)
  const found = [...(children.get(id) ?? [])]
  // What is found is appended, and looked at in its turn.
  for (const { id: next } of found) found.push(...(children.get(next) ?? []))
  return found
}

const lacking = (wanted: ReadonlyArray<TokenScope>, own: ReadonlyArray<TokenScope>) =>
  wanted.filter((scope) => !own.includes(scope)).join(", ")

/** What a token makes: its settings, or why it may not. */
type Inherited = { readonly settings: AnyNewToken } | { readonly refusal: string }

/**
 * Returns the settings of a token that somebody makes: it can do no more than its maker and, if that
 * is a token, goes no faster and lasts no longer.
 *
 * @param before how many tokens that token was made with, one with the other.
 */
export const inherited = (
  asked: AnyNewToken,
  { scopes, token: maker }: Pick<Asker, "scopes" | "token">,
  before: number
): Inherited => {
  const lacks = lacking(asked.scopes, scopes)
  if (lacks !== "")
    return { refusal: `a token gives only scopes that it has itself, and not ${lacks}` }
  if (maker === undefined) return { settings: asked }
  if (before + 1 >= maxLine)
    return {
      refusal: `this token is the ${maxLine}th in a line of tokens that made each other, and makes none: use one before it`
    }
  const { rate: most = defaultTokenRate, endpoint, expiresAt: end } = maker
  const { rate = most, expiresAt = end } = asked
  if (rate > most)
    return {
      refusal: `a token gives no higher rate than its own, ${countText(most)} requests a second`
    }
  if (end !== undefined && (expiresAt === undefined || expiresAt > end))
    return {
      refusal: `a token makes none that outlives it: it expires at ${new Date(end).toISOString()}`
    }
  if (endpoint !== undefined && asked.endpoint !== endpoint)
    return {
      refusal: `this token is about the endpoint ${endpoint} alone, as must be what it makes`
    }
  return { settings: { ...asked, rate, ...(expiresAt === undefined ? {} : { expiresAt }) } }
}

/**
 * Returns why a token may not revoke another one, or undefined.
 *
 * @param line the tokens that it was made with.
 */
export const revocationRefusal = (
  { id, scopes }: TokenView,
  maker: TokenView,
  line: ReadonlyArray<TokenView>
): string | undefined => {
  if (line.some((one) => one.id === id))
    return `this token was made with ${id}, and does not revoke it`
  const lacks = lacking(scopes, maker.scopes)
  return lacks === "" ? undefined : `${id} has scopes that this token does not have: ${lacks}`
}

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

/** How long a token may be valid still that was revoked while the watch had died, ms. */
const lagMs = 400
/** How long the broker may refuse to show the tokens before none is taken, ms: one that starts does. */
const unshownMs = 15_000

/** The tokens of the bucket by their ids, and of each tenant. */
class TokenTable implements FollowedEntries {
  readonly tokens = new Map<string, TokenRecord>()
  readonly #ofTenant = new Map<string, Map<string, TokenRecord>>()

  hear(key: string, text: string | undefined): void {
    const record = text === undefined ? undefined : decodeToken(key, text)
    this.#forget(key)
    if (record === undefined) return
    this.tokens.set(key, record)
    const own = this.#ofTenant.get(record.tenant) ?? new Map()
    this.#ofTenant.set(record.tenant, own.set(key, record))
  }

  #forget(key: string): void {
    const { tenant = "" } = this.tokens.get(key) ?? {}
    this.tokens.delete(key)
    const own = this.#ofTenant.get(tenant)
    own?.delete(key)
    if (own?.size === 0) this.#ofTenant.delete(tenant)
  }

  of(tenant: string): ReadonlyArray<TokenRecord> {
    return [...(this.#ofTenant.get(tenant)?.values() ?? [])]
  }
}

/** The tokens of the bucket, kept current: a revoked one is refused within a second. */
export class LiveTokens extends Context.Service<
  LiveTokens,
  {
    /**
     * False while the account of tokens, where they have one, is not connected, and while the broker
     * refuses to show the tokens: which of them were revoked, or made, is not known then. True while the
     * broker is away: nobody can revoke any, and the log of deliveries can still be read.
     */
    readonly isCurrent: () => boolean
    /**
     * Returns the record of a token; undefined for one that is unknown or was revoked, itself or a
     * token that it was made with, and for all while `isCurrent` is false. It may have expired.
     */
    readonly find: (token: string) => TokenRecord | undefined
    readonly get: (id: string) => TokenRecord | undefined
    /** Returns all tokens of a tenant, those that are refused included. */
    readonly of: (tenant: string) => ReadonlyArray<TokenRecord>
    readonly all: () => ReadonlyArray<TokenRecord>
    /** Tokens that are about to be stored. */
    readonly reservations: Reservations
  }
>()("petrel/operations/LiveTokens") {
  /** Ready when all tokens have been read once. */
  static readonly layer = Layer.effect(
    LiveTokens,
    Effect.gen(function* () {
      const { names } = yield* Broker
      let refusedSince: number | undefined
      const shown = (isShown: boolean) => {
        refusedSince = isShown ? undefined : (refusedSince ?? timers.monotonicMs())
      }
      const options = { bucket: names.buckets.tokens, lagMs, shown }
      const current = yield* inAccess(followBucket(options, () => new TokenTable()))
      const isConnected = yield* accessConnection
      const isShown = () =>
        refusedSince === undefined || timers.monotonicMs() - refusedSince < unshownMs
      const isCurrent = () => isConnected() && isShown()
      const get = (id: string) => current().tokens.get(id)
      return LiveTokens.of({
        isCurrent,
        find: (token) => {
          if (!isCurrent()) return undefined
          const id = tokenIdOf(token)
          const record = id === undefined ? undefined : get(id)
          if (record === undefined || !isTokenOf(record, token)) return undefined
          return lineOf(record, get) === undefined ? undefined : record
        },
        get,
        of: (tenant) => current().of(tenant),
        all: () => [...current().tokens.values()],
        reservations: new Reservations()
      })
    })
  )
}
