import { Clock, Effect } from "effect"
import { readUser } from "../../broker/user.ts"
import { isToken, nobody } from "../../domain/token.ts"
import { appendFact } from "../../history/append-fact.ts"
import type { TokenView } from "./token.ts"

/**
 * Appends that a token was made or revoked. A token of all tenants belongs to none.
 *
 * @param reason why it was revoked, if not for itself.
 */
export const appendTokenFact = Effect.fnUntraced(function* (
  kind: "token-created" | "token-revoked",
  { by: _, createdAt: __, tenant, ...token }: TokenView,
  by: string,
  reason?: string
) {
  const at = yield* Clock.currentTimeMillis
  const user = yield* readUser
  const whose = { tenant: isToken(tenant) ? tenant : nobody, endpoint: nobody }
  yield* appendFact({ v: 1, kind, at, ...whose, token, by, user, reason }, `${kind}.${token.id}`)
})
