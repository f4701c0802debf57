import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { createToken, listTokens, revokeToken } from "../../operations/tokens/manage-tokens.ts"
import { allTenants } from "../../operations/tokens/token.ts"
import { Caller } from "../access.ts"
import { Api } from "../definition/api.ts"
import { listing, reading } from "../failures.ts"
import { Forbidden } from "../problems.ts"

/** Carries out the routes of tokens. */
export const tokensHandlers = HttpApiBuilder.group(Api, "tokens", (handlers) =>
  handlers.handleAll({
    create: Effect.fnUntraced(function* ({ params: { tenant }, payload }) {
      const { by, scopes } = yield* Caller
      // Otherwise, whoever may make tokens could do everything.
      const missing = payload.scopes.filter((scope) => !scopes.includes(scope))
      if (missing.length > 0)
        return yield* new Forbidden({
          detail: `a token gives only scopes that it has itself, and not ${missing.join(", ")}`
        })
      return yield* listing(createToken({ ...payload, tenant }, by))
    }),
    list: ({ params: { tenant } }) =>
      listing(
        Effect.map(listTokens(tenant === allTenants ? undefined : tenant), (tokens) => ({ tokens }))
      ),
    revoke: ({ params: { tenant, token } }) =>
      reading(revokeToken(token, tenant === allTenants ? undefined : tenant))
  })
)
