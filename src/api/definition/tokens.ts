import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { CreatedToken, NewToken, scopes, TokenView } from "../../operations/tokens/token.ts"
import { Access, Needs } from "../access.ts"
import { NotFound } from "../problems.ts"
import { TenantOrAll, tenantPath } from "./common.ts"
import { documented } from "./documented.ts"

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
const tenantParams = { tenant: TenantOrAll }

const create = HttpApiEndpoint.post("create", path, {
  params: tenantParams,
  payload: NewTokenBody,
  success: Created.pipe(HttpApiSchema.status(201))
})
  .annotate(Needs, "tokens:write")
  .annotate(OpenApi.Summary, "Make a token with scopes that the asking one has")

const list = HttpApiEndpoint.get("list", path, {
  params: tenantParams,
  success: Schema.Struct({ tokens: Schema.Array(View) }).annotate({ identifier: "TokenList" })
})
  .annotate(Needs, "tokens:write")
  .annotate(OpenApi.Summary, "List tokens, without what is secret of them")

const revoke = HttpApiEndpoint.delete("revoke", `${path}/:token`, {
  params: {
    ...tenantParams,
    token: Schema.String.annotateKey({
      description: "The token's id.",
      examples: ["0123456789abcdef"]
    })
  },
  success: View,
  error: [NotFound]
})
  .annotate(Needs, "tokens:write")
  .annotate(OpenApi.Summary, "Revoke a token: it is refused within a second")

/** Routes of tokens. */
export class TokensGroup extends HttpApiGroup.make("tokens")
  .add(create, list, revoke)
  .middleware(Access)
  .annotate(OpenApi.Description, "Who may do what through this API.") {}
