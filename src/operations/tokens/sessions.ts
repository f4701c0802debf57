import { Clock, Effect, Schedule, Schema } from "effect"
import { present } from "../../domain/present.ts"
import { NotAllowed } from "../failures.ts"
import { LiveTokens } from "./live-tokens.ts"
import { createToken } from "./manage-tokens.ts"
import { generateToken, hasExpired, type TokenRecord, tokenView } from "./token.ts"
import { replaceToken } from "./token-store.ts"

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
  const { find } = yield* LiveTokens
  const now = yield* Clock.currentTimeMillis
  const record = find(given)
  if (record === undefined)
    return yield* refuse("there is no such token or link: it was used, revoked, or never was")
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
