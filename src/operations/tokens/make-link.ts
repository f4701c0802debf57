import { Clock, Duration, Effect, Schema } from "effect"
import { present } from "../../domain/present.ts"
import { Token } from "../../domain/token.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import type { Asker } from "../caller.ts"
import { createToken } from "./manage-tokens.ts"
import { allTenants, Brand, scopes, type TokenScope, TokenView } from "./token.ts"

/** How long a link and its session last, ms: at most, and unless something else is said. */
const maxLinkMs = Duration.toMillis("24 hours")
const usualMs = Duration.toMillis("1 hour")
/** How long an operator's session lasts from the making of its link, ms. */
const operatorMs = Duration.toMillis("12 hours")
/** How long a link may be opened, ms: it is a secret that travels. */
const opensWithinMs = Duration.toMillis("1 hour")

/** Where the pages of the console open a link: the secret is behind the #, which no server gets. */
export const linkPath = (token: string): string => `/ui/login#${token}`

/** What the owner of a tenant's endpoints may do with them by default. */
const portalScopes: ReadonlyArray<TokenScope> = [
  ...(["endpoints:read", "endpoints:write", "deliveries:read", "payloads:read"] as const),
  ...(["dead:read", "dead:write"] as const)
]

/** A link to the portal that is to be made. */
export const NewPortalLink = Schema.Struct({
  endpoint: Schema.optionalKey(Token),
  lastsMs: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 60_000, maximum: maxLinkMs }))
  ),
  name: TokenView.fields.name,
  readOnly: Schema.optionalKey(Schema.Boolean),
  brand: Schema.optionalKey(Brand)
})
export type NewPortalLink = typeof NewPortalLink.Type

/** A link that was made. */
export const MadeLink = Schema.Struct({
  ...TokenView.fields,
  /** Path and fragment, to be put behind the console's address. It is shown this once. */
  path: Schema.String
})
export type MadeLink = typeof MadeLink.Type

const linkOf = ({ token, ...view }: TokenView & { readonly token: string }): MadeLink => ({
  ...view,
  path: linkPath(token)
})

/**
 * Makes a link to the pages about a tenant, or one of its endpoints: it opens one session. Link and
 * session end at the same time. Fails with EndpointNotFound, and as `createToken` does.
 */
export const makePortalLink = Effect.fnUntraced(function* (
  tenant: string,
  { brand, endpoint, lastsMs = usualMs, name, readOnly = false }: NewPortalLink,
  asker: Asker
) {
  if (endpoint !== undefined) yield* getEndpoint(tenant, endpoint)
  const now = yield* Clock.currentTimeMillis
  const wanted = portalScopes.filter((scope) => !readOnly || scope.endsWith(":read"))
  const [first, ...others] = wanted
  const made = yield* createToken(
    {
      ...{ tenant, scopes: [first ?? "endpoints:read", ...others], use: "link" },
      ...{ expiresAt: now + lastsMs, opensUntil: now + Math.min(lastsMs, opensWithinMs) },
      ...present({ brand, endpoint, name })
    },
    asker
  )
  return linkOf(made)
})

/** Makes a link that logs an operator in. */
export const makeOperatorLink = Effect.fnUntraced(function* (name: string, asker: Asker) {
  const now = yield* Clock.currentTimeMillis
  const made = yield* createToken(
    {
      ...{ tenant: allTenants, scopes, use: "link", name },
      ...{ expiresAt: now + operatorMs, opensUntil: now + opensWithinMs }
    },
    asker
  )
  return linkOf(made)
})
