import { Context, Effect, Layer } from "effect"
import { inAccess } from "../../broker/access.ts"
import { Broker } from "../../broker/broker.ts"
import type { FollowedEntries } from "../../broker/bucket-follow.ts"
import { followBucket } from "../../broker/bucket-follow.ts"
import { Reservations } from "../../broker/reservations.ts"
import { lineOf } from "./lineage.ts"
import type { TokenRecord } from "./token.ts"
import { isTokenOf, tokenIdOf } from "./token.ts"
import { decodeToken } from "./token-store.ts"

/** How long a token may be valid still that was revoked while the watch had died, ms. */
const lagMs = 400

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
     * Returns the record of a token; undefined for one that is unknown or was revoked, itself or a
     * token that it was made with. It may have expired.
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
      const options = { bucket: names.buckets.tokens, lagMs }
      const current = yield* inAccess(followBucket(options, () => new TokenTable()))
      const get = (id: string) => current().tokens.get(id)
      return LiveTokens.of({
        find: (token) => {
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
