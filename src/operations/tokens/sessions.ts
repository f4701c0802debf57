import { Clock, Duration, Effect, Schedule, Schema } from "effect"
import { present } from "../../domain/record.ts"
import { Token } from "../../domain/token.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import type { Asker } from "../caller.ts"
import { NotAllowed } from "../caller.ts"
import type { TokenRecord, TokenScope } from "../token.ts"
import {
  allTenants,
  Brand,
  generateToken,
  hasExpired,
  scopes,
  TokenView,
  tokenView
} from "../token.ts"
import { createToken } from "./manage-tokens.ts"
import { LiveTokens, replaceToken } from "./token-store.ts"

/** How long a session lasts that was opened with a token, ms. */
const sessionMs = 12 * 3_600_000

/** Nobody is logged in with what was given. The message says why, and what to do. */
export class NotLoggedIn extends Schema.TaggedError<NotLoggedIn>()("NotLoggedIn", {
  message: Schema.String
}) {}

const refuse = (message: string) => new NotLoggedIn({ message })

/**
 * Opens a session with a link, which is used up by it. The session is the same token with another
 * secret: it has the link's rights, end and place, and is revoked by the link's id.
 */
const openLink = Effect.fnUntraced(function* (link: TokenRecord, now: number) {
  if (link.opensUntil !== undefined && link.opensUntil <= now)
    return yield* refuse("the link has expired: ask for another one")
  const { opensUntil: _, ...rest } = link
  const { hash, token } = yield* generateToken(link.id)
  const session: TokenRecord = { ...rest, use: "session", hash }
  if (!(yield* replaceToken(link, session)))
    return yield* refuse(
      "the link was used already, and opens one session only: ask for another one"
    )
  return token
})

/** Opens a session with a token, with its rights, which is revoked with it. */
const openWith = Effect.fnUntraced(function* (maker: TokenRecord, now: number) {
  const { endpoint, expiresAt = Number.POSITIVE_INFINITY, name, scopes, tenant } = maker
  const asked = {
    ...{ tenant, scopes, use: "session" as const, expiresAt: Math.min(expiresAt, now + sessionMs) },
    ...present({ endpoint, name })
  }
  const { token } = yield* createToken(asked, {
    ...{ by: `token ${maker.id}`, scopes, token: tokenView(maker) }
  }).pipe(Effect.catchTag("Invalid", ({ message }) => new NotAllowed({ message })))
  return token
})

/** How long a console may take until it knows of a session that it has stored, ms. */
const knownWithinMs = 2_000

/**
 * Opens a session of a browser: with a link, once, or with a token that may be used as often as one
 * likes. Fails with NotLoggedIn, or with QuotaReached.
 *
 * @returns the session's token, which is for a cookie, once this console takes it.
 */
export const openSession = Effect.fnUntraced(function* (given: string) {
  const { find, isCurrent } = yield* LiveTokens
  const now = yield* Clock.currentTimeMillis
  const record = find(given)
  if (record === undefined && !isCurrent())
    return yield* refuse(
      "the console is not connected to the account of tokens, or cannot read them: its log says why"
    )
  if (record === undefined)
    return yield* refuse("there is no such token or link: it was used, revoked, or never existed")
  if (hasExpired(record, now)) return yield* refuse("it has expired: ask for another one")
  if (record.use === "session") return yield* refuse("this is the session of another browser")
  const token = yield* record.use === "link" ? openLink(record, now) : openWith(record, now)
  const known = Effect.sync(() => find(token)).pipe(
    Effect.filterOrFail((found) => found !== undefined),
    Effect.retry(Schedule.spaced("10 millis")),
    Effect.timeoutOption(knownWithinMs)
  )
  yield* known
  return token
})

/** How long a link and its session last, ms: at least, at most, and unless something else is said. */
export const minLinkMs = Duration.toMillis("1 minute")
export const maxLinkMs = Duration.toMillis("24 hours")
const usualMs = Duration.toMillis("1 hour")
/** True for a time that a link and its session may last, ms. */
export const isLinkSpan = (ms: number): boolean => ms >= minLinkMs && ms <= maxLinkMs
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
  endpoint: Schema.optionalKey(Token).annotateKey({ description: "The id of the endpoint." }),
  lastsMs: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: minLinkMs, maximum: maxLinkMs }))
  ),
  name: TokenView.fields.name,
  readOnly: Schema.optionalKey(Schema.Boolean),
  brand: Schema.optionalKey(Brand).annotateKey({ description: "What the pages of a portal show." })
})
export type NewPortalLink = typeof NewPortalLink.Type

/** A link that was made. */
export const MadeLink = Schema.Struct({
  ...TokenView.fields,
  path: Schema.String.annotateKey({
    description: "Path and fragment, to be put behind the console's address. It is shown this once."
  })
})
export type MadeLink = typeof MadeLink.Type

const linkOf = ({ token, ...view }: TokenView & { readonly token: string }): MadeLink => ({
  ...view,
  path: linkPath(token)
})

/**
 * Makes a link to the pages about a tenant, or one of its endpoints: it opens one session, within
 * `opensWithinMs`, which ends when the link would. Fails with EndpointNotFound, and as `createToken` does.
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
