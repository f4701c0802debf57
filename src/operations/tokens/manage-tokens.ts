import { Clock, Effect, Schema } from "effect"
import type { Problem } from "../../domain/problem.ts"
import { Invalid } from "../../domain/problem.ts"
import type { CreatedToken, NewToken, TokenView } from "./token.ts"
import { allTenants, generateToken, isTokenId, tokenView } from "./token.ts"
import { eraseToken, readToken, readTokens, storeToken } from "./token-store.ts"

/** There is no token of this id. */
export class TokenNotFound extends Schema.TaggedError<TokenNotFound>()("TokenNotFound", {
  id: Schema.String
}) {
  override get message() {
    return `there is no token ${this.id}: it was revoked, or never was; \`petrel token list\` shows those there are`
  }
}

const problemsOf = (
  { expiresAt, scopes, tenant }: NewToken,
  now: number
): ReadonlyArray<Problem> => [
  ...(scopes.includes("operator") && tenant !== allTenants
    ? [{ field: "scopes", message: "has operator, which only a token of all tenants (`*`) can be" }]
    : []),
  ...(expiresAt !== undefined && expiresAt <= now
    ? [{ field: "expiresAt", message: "is in the past: the token would never be valid" }]
    : [])
]

/**
 * Makes a token and stores what proves it. The token itself is in the answer only.
 *
 * @param by who asks for it.
 */
export const createToken = Effect.fnUntraced(function* (settings: NewToken, by: string) {
  const now = yield* Clock.currentTimeMillis
  const problems = problemsOf(settings, now)
  if (problems.length > 0) return yield* new Invalid({ problems })
  const { hash, id, token } = yield* generateToken
  const shown: TokenView = { id, ...settings, createdAt: now, by }
  yield* storeToken({ v: 1, ...shown, hash })
  return { ...shown, token } satisfies CreatedToken
})

/**
 * Lists tokens, oldest first.
 *
 * @param tenant only those of this tenant; `*` for those that hold for all. (Default: all there are)
 */
export const listTokens = (tenant?: string) =>
  Effect.map(readTokens, (all) =>
    all.filter((one) => tenant === undefined || one.tenant === tenant).map(tokenView)
  )

/**
 * Revokes a token: it is refused from then on. Fails with TokenNotFound.
 *
 * @param tenant only if it is of this tenant.
 */
export const revokeToken = Effect.fnUntraced(function* (id: string, tenant?: string) {
  const record = isTokenId(id) ? yield* readToken(id) : undefined
  if (record === undefined || (tenant !== undefined && record.tenant !== tenant))
    return yield* new TokenNotFound({ id })
  yield* eraseToken(id)
  return tokenView(record)
})
