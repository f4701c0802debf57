import { Effect, Schema } from "effect"
import { Caller } from "../caller.ts"
import { documented, operation, operationGroup, withStatus } from "../operation.ts"
import { PathText, TenantOrAll, tenantOf, tenantPath } from "../parameters.ts"
import { TokenNotFound } from "../refusals.ts"
import { CreatedToken, NewToken, RevokedToken, scopes, TokenView } from "../token.ts"
import { createToken, listTokens, revokeToken } from "./manage-tokens.ts"

const { tenant: _, ...settings } = NewToken.fields

const texts = {
  id: "Its id, the middle part of the token.",
  tenant: "Whose it is; `*`: of all tenants.",
  scopes: `What it may do: ${scopes.join(", ")}.`,
  name: "What it is for.",
  rate: "Requests per second. (Default: as the token it is made with, else 1,000)",
  expiresAt: "When it expires. (Default: with the token it is made with, else never)",
  createdAt: "When it was made.",
  by: "Who made it.",
  parent:
    "The token that it was made with. What that one cannot do, it cannot; it is revoked with it."
}

const NewTokenBody = documented(Schema.Struct(settings), {
  identifier: "NewToken",
  fields: texts,
  examples: [{ scopes: ["events:publish"], name: "the shop" }]
})

const View = documented(TokenView, { identifier: "Token", fields: texts })

const Created = documented(CreatedToken, {
  identifier: "CreatedToken",
  description: "A token that was made.",
  fields: { ...texts, token: "The token itself. It is shown this once." }
})

const Revoked = documented(RevokedToken, {
  identifier: "RevokedToken",
  description: "A token that was revoked.",
  fields: { ...texts, with: "The ids of those that were made with it, and are revoked with it." }
})

const path = `${tenantPath}/tokens` as const
const params = { tenant: TenantOrAll }
const one = {
  ...params,
  token: PathText.annotateKey({
    description: "The token's id.",
    examples: ["0123456789abcdef"]
  })
}

/** A token as a repetition of the request that made it is told: without what is secret. */
const withoutText = (made: CreatedToken | TokenView): TokenView => {
  const { token: _, ...shown } = { token: "", ...made }
  return shown
}

const create = operation("create", "POST", path, {
  scope: "tokens:write",
  summary: "Make a token that can do no more than the one that makes it",
  description:
    "Its scopes, rate and expiry are at most those of the token that it is made with, and it is revoked with that one. A repetition with the same Idempotency-Key is answered with 200 and without the token itself, which is kept nowhere: if the first answer was lost, revoke that one by its id and make another.",
  refusals: ["conflict"],
  params,
  payload: NewTokenBody,
  output: [withStatus(Created, 201), View],
  once: withoutText,
  run: ({ params: { tenant }, payload }) =>
    Effect.flatMap(Caller, (caller) => createToken({ ...payload, tenant }, caller))
})

const list = operation("list", "GET", path, {
  scope: "tokens:write",
  summary: "List tokens, without their secrets",
  params,
  output: Schema.Struct({
    tokens: Schema.Array(View).annotateKey({ description: "The tokens." })
  }).annotate({ identifier: "TokenList" }),
  run: ({ params: { tenant } }) =>
    Effect.map(listTokens(tenantOf(tenant)), (tokens) => ({ tokens }))
})

/** Returns a token without its secret. Fails with TokenNotFound. */
export const showToken = Effect.fnUntraced(function* (id: string, tenant?: string) {
  const found = (yield* listTokens(tenant)).find((one) => one.id === id)
  return found ?? (yield* new TokenNotFound({ id }))
})

const get = operation("get", "GET", `${path}/:token`, {
  scope: "tokens:write",
  refusals: ["not-found"],
  summary: "Show a token, without its secret",
  params: one,
  output: View,
  run: ({ params: { tenant, token } }) => showToken(token, tenantOf(tenant))
})

const revoke = operation("revoke", "DELETE", `${path}/:token`, {
  scope: "tokens:write",
  refusals: ["not-found"],
  summary: "Revoke a token and those made with it: they are refused within a second",
  description: "A token revokes those whose scopes it has itself, and none that it was made with.",
  params: one,
  output: Revoked,
  run: ({ params: { tenant, token } }) =>
    Effect.flatMap(Caller, (caller) => revokeToken(token, caller, tenantOf(tenant)))
})

/** Operations on tokens. */
export const tokenOperations = operationGroup(
  "tokens",
  "Who may do what through this API.",
  create,
  list,
  get,
  revoke
)
