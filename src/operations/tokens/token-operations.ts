import { Effect, Schema } from "effect"
import { documented } from "../documented.ts"
import { Caller, operation, operationGroup, withStatus } from "../operation.ts"
import { TenantOrAll, tenantOf, tenantPath } from "../parameters.ts"
import { NotAllowed } from "../refusals.ts"
import { createToken, listTokens, revokeToken } from "./manage-tokens.ts"
import { CreatedToken, NewToken, scopes, TokenView } from "./token.ts"

const { tenant: _, ...settings } = NewToken.fields

const texts = {
  id: "Its id, the middle part of the token.",
  tenant: "Whose it is; `*`: of all tenants.",
  scopes: `What it may do: ${scopes.join(", ")}.`,
  name: "What it is for.",
  rate: "Requests per second. (Default: 1,000)",
  expiresAt: "When it expires, ms since the epoch. (Default: never)",
  createdAt: "ms since the epoch.",
  by: "Who made it."
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

const path = `${tenantPath}/tokens` as const
const params = { tenant: TenantOrAll }
const one = {
  ...params,
  token: Schema.String.annotateKey({
    description: "The token's id.",
    examples: ["0123456789abcdef"]
  })
}

const create = operation("create", "POST", path, {
  scope: "tokens:write",
  summary: "Make a token with scopes that the asking one has",
  params,
  payload: NewTokenBody,
  output: withStatus(Created, 201),
  run: ({ params: { tenant }, payload }) =>
    Effect.gen(function* () {
      const { by, scopes } = yield* Caller
      // Otherwise, whoever may make tokens could do everything.
      const missing = payload.scopes.filter((scope) => !scopes.includes(scope))
      if (missing.length > 0)
        return yield* new NotAllowed({
          message: `a token gives only scopes that it has itself, and not ${missing.join(", ")}`
        })
      return yield* createToken({ ...payload, tenant }, by)
    })
})

const list = operation("list", "GET", path, {
  scope: "tokens:write",
  summary: "List tokens, without what is secret of them",
  params,
  output: Schema.Struct({ tokens: Schema.Array(View) }).annotate({ identifier: "TokenList" }),
  run: ({ params: { tenant } }) =>
    Effect.map(listTokens(tenantOf(tenant)), (tokens) => ({ tokens }))
})

const revoke = operation("revoke", "DELETE", `${path}/:token`, {
  scope: "tokens:write",
  refusals: ["not-found"],
  summary: "Revoke a token: it is refused within a second",
  params: one,
  output: View,
  run: ({ params: { tenant, token } }) => revokeToken(token, tenantOf(tenant))
})

/** Operations on tokens. */
export const tokenOperations = operationGroup(
  "tokens",
  "Who may do what through this API.",
  create,
  list,
  revoke
)
