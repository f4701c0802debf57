import { IncomingMessage } from "node:http"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { Caller } from "../operations/caller.ts"
import type { TokenRecord, TokenScope } from "../operations/token.ts"
import { allTenants, defaultTokenRate, hasExpired, tokenView } from "../operations/token.ts"
import { LiveTokens } from "../operations/tokens/token-store.ts"
import { timers } from "../time/timers.ts"
import { credentialOf, Insider, type InsiderRecord } from "./credential.ts"
import { tooManyRequests, unavailable } from "./failures.ts"
import { listedOperations } from "./groups.ts"
import { LiveConnections } from "./live-connections.ts"
import { Forbidden, TooManyRequests, Unauthorized, Unavailable } from "./problems.ts"
import { countingBody, RequestBodies } from "./request-body.ts"
import { RequestNotes, withHeader, withHeaders } from "./request-notes.ts"
import { holdSlot, RequestRates, rateHeaders, Slots } from "./tokens/caller-limits.ts"

/** Lets a request pass whose token is valid for its tenant and has the scope of its route. */
export class Access extends HttpApiMiddleware.Service<Access, { provides: Caller }>()(
  "petrel/api/Access",
  {
    security: {
      token: HttpApiSecurity.bearer
    },
    error: [Unauthorized, Forbidden, TooManyRequests, Unavailable]
  }
) {}

const unauthorized = (detail: string) =>
  Effect.andThen(
    withHeader("www-authenticate", 'Bearer realm="petrel"'),
    new Unauthorized({ detail })
  )

/** Takes a request of a token, whose answer says how many more it may make. */
const takeRequest = (rates: RequestRates, { id, rate = defaultTokenRate }: TokenRecord) =>
  Effect.suspend(() => {
    const { left, waitMs } = rates.take(id, rate)
    const after = Math.max(1, Math.ceil(waitMs / 1_000))
    const told = withHeaders(rateHeaders(rate, left, after))
    if (waitMs === 0) return told
    const detail = `the token may make ${rate} requests a second: wait, or give it a higher rate`
    return Effect.andThen(told, tooManyRequests(detail, after))
  })

/** Returns why a token or a subject may not use a route for a tenant, or undefined. */
const refusalOf = (
  { scopes, tenant: own }: Pick<InsiderRecord, "scopes" | "tenant">,
  needs: TokenScope,
  tenant: string | undefined,
  what: "subject" | "token"
): string | undefined => {
  if (!scopes.includes(needs)) return `the ${what} does not have the scope ${needs}`
  if (own === allTenants) return undefined
  if (tenant === undefined || tenant === allTenants)
    return `this needs a ${what} of all tenants, and the ${what} is one of ${own}`
  return tenant === own ? undefined : `the ${what} is one of ${own}, and not of ${tenant}`
}

/** Returns why a token does not stand for itself in this place, or undefined. */
const misuseOf = ({ use }: TokenRecord, isCookie: boolean): string | undefined => {
  if (use === "link") return "this is a link: a browser opens a session with it, and nothing else"
  if (use === "session" && !isCookie) return "this is the session of a browser, in its cookie"
  return use !== "session" && isCookie ? "the cookie holds no session: log in again" : undefined
}

/** The scope that each operation needs, by its id. */
const scopeOf: ReadonlyMap<string, TokenScope> = new Map(
  listedOperations.flatMap(({ id, operation: { scope } }) =>
    scope === undefined ? [] : [[id, scope]]
  )
)

/**
 * `Access` by the tokens in the bucket, or by what has authorised an insider.
 *
 * @param isSecure true if browsers ask over TLS.
 */
export const accessLayer = (isSecure: boolean) =>
  Layer.effect(
    Access,
    Effect.gen(function* () {
      const tokens = yield* LiveTokens
      const bodies = yield* RequestBodies
      const connections = yield* LiveConnections
      const slots = yield* Slots
      const rates = new RequestRates()
      return Access.of({
        token: Effect.fnUntraced(function* (next, { credential, endpoint, group }) {
          const insider = yield* Insider
          const { tenant } = yield* HttpRouter.params
          const needs = scopeOf.get(`${group.identifier}.${endpoint.identifier}`) ?? "operator"
          if (insider !== undefined) {
            const refusal = refusalOf(insider, needs, tenant, "subject")
            if (refusal !== undefined) return yield* new Forbidden({ detail: refusal })
            return yield* countingBody(bodies, insider.tenant, next).pipe(
              Effect.provideService(Caller, { token: undefined, isValid: () => true, ...insider })
            )
          }
          const request = yield* HttpServerRequest.HttpServerRequest
          const bearer = Redacted.value(credential)
          const { isCookie, token: given } =
            bearer === "" ? credentialOf(isSecure, request) : { isCookie: false, token: bearer }
          if (given === "")
            return yield* unauthorized("send a token: `Authorization: Bearer ptl_…`")
          const record = tokens.find(given)
          if (record === undefined && !tokens.isCurrent())
            return yield* unavailable(
              "the console is not connected to the account of tokens, or cannot read them, so it is not known whether this one was revoked: its log says why"
            )
          if (record === undefined)
            return yield* unauthorized("there is no such token: it was revoked, or never existed")
          const misuse = misuseOf(record, isCookie)
          if (misuse !== undefined) return yield* unauthorized(misuse)
          const notes = yield* RequestNotes
          notes.token = record.id
          if (hasExpired(record, timers.wallMs()))
            return yield* unauthorized("the token has expired")
          const { source } = request
          if (source instanceof IncomingMessage) connections.recognize(source.socket, record.tenant)
          yield* takeRequest(rates, record)
          const refusal = refusalOf(record, needs, tenant, "token")
          if (refusal !== undefined) return yield* new Forbidden({ detail: refusal })
          const by = `${record.use ?? "token"} ${record.id}${record.name === undefined ? "" : ` (${record.name})`}`
          const caller = {
            token: tokenView(record),
            tenant: record.tenant,
            scopes: record.scopes,
            by,
            endpoint: record.endpoint,
            isValid: () => {
              const now = tokens.find(given)
              return now !== undefined && !hasExpired(now, timers.wallMs())
            }
          }
          yield* holdSlot(slots.requests, caller, {
            bound: "requests",
            things: "requests that are not answered yet",
            advice: "send more when some of them are"
          })
          return yield* countingBody(bodies, record.tenant, next).pipe(
            Effect.provideService(Caller, caller)
          )
        })
      })
    })
  )
