import { Context, Effect, Layer } from "effect"
import { inAccess } from "../../broker/access.ts"
import { Broker } from "../../broker/broker.ts"
import type { FollowedEntries } from "../../broker/bucket-follow.ts"
import { followBucket } from "../../broker/bucket-follow.ts"
import type { TokenRecord } from "../../operations/tokens/token.ts"
import { isTokenOf, tokenIdOf } from "../../operations/tokens/token.ts"
import { decodeToken } from "../../operations/tokens/token-store.ts"

/** How long a token may be valid still that was revoked while the watch had died, ms. */
const lagMs = 400

/** The tokens of the bucket by their ids. */
class TokenTable implements FollowedEntries {
  readonly tokens = new Map<string, TokenRecord>()

  hear(key: string, text: string | undefined): void {
    const record = text === undefined ? undefined : decodeToken(key, text)
    if (record === undefined) this.tokens.delete(key)
    else this.tokens.set(key, record)
  }
}

/** The tokens of the bucket, kept current: a revoked one is refused within a second. */
export class LiveTokens extends Context.Service<
  LiveTokens,
  {
    /**
     * Returns the record of a token; undefined for one that is unknown or was revoked. It may have
     * expired.
     */
    readonly find: (token: string) => TokenRecord | undefined
  }
>()("petrel/api/LiveTokens") {
  /** Ready when all tokens have been read once. */
  static readonly layer = Layer.effect(
    LiveTokens,
    Effect.gen(function* () {
      const { names } = yield* Broker
      const options = { bucket: names.buckets.tokens, lagMs }
      const current = yield* inAccess(followBucket(options, () => new TokenTable()))
      return LiveTokens.of({
        find: (token) => {
          const id = tokenIdOf(token)
          const record = id === undefined ? undefined : current().tokens.get(id)
          return record !== undefined && isTokenOf(record, token) ? record : undefined
        }
      })
    })
  )
}
