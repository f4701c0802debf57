import { Context, Effect, Layer, Schema, Scope } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Broker } from "../broker/broker.ts"
import { timeText } from "../domain/timestamp.ts"
import { NotAllowed } from "../operations/caller.ts"
import { QuotaReached } from "../operations/refusals.ts"
import { hasExpired, type TokenRecord } from "../operations/token.ts"
import { revokeToken } from "../operations/tokens/manage-tokens.ts"
import { NotLoggedIn, openSession } from "../operations/tokens/sessions.ts"
import { LiveTokens } from "../operations/tokens/token-store.ts"
import { withoutCommands } from "../text/plain-text.ts"
import { timers } from "../time/timers.ts"
import { credentialOf, sessionCookie } from "./credential.ts"
import { awaySeconds } from "./failures.ts"
import { problemResponse, unavailableProblem } from "./problems.ts"
import { readBody } from "./request-body.ts"
import { RequestNotes } from "./request-notes.ts"

/** Where a browser opens, looks at and ends its session. */
export const sessionPath = "/session"

/** A token or link, and what is around it. */
const maxBodyBytes = 1_024

const Given = Schema.fromJsonString(Schema.Struct({ token: Schema.String }))
const decodeGiven = Schema.decodeUnknownOption(Given)
const decoder = new TextDecoder()

const unauthorized = (detail: string, headers: Record<string, string> = {}) =>
  problemResponse(
    { status: 401, name: "unauthorized", title: "A valid token is needed", detail },
    headers
  )

const refused = (status: number, name: string, title: string, detail: string) =>
  problemResponse({ status, name, title, detail })

/** What a session's pages are told about it. */
const viewOf = ({ brand, endpoint, expiresAt, id, name, scopes, tenant }: TokenRecord) => ({
  id,
  tenant,
  endpoint,
  scopes,
  name,
  brand,
  expiresAt: expiresAt === undefined ? undefined : timeText(expiresAt)
})

/**
 * Sessions of browsers: opened with a token or a link (`POST`), looked at (`GET`) and ended
 * (`DELETE`). The token of a session is in a cookie that no script can read.
 *
 * @param isSecure true if browsers ask over TLS.
 */
export const sessionRoutes = (isSecure: boolean) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const tokens = yield* LiveTokens
      const cookie = (host: string | undefined, token: string) => ({
        "set-cookie": sessionCookie(isSecure, host ?? "", token)
      })
      /** The session of a request; undefined without one that is valid. */
      const current = Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const { isCookie, token } = credentialOf(isSecure, request)
        const record = isCookie ? tokens.find(token) : undefined
        if (record?.use !== "session" || hasExpired(record, timers.wallMs())) return undefined
        const notes = yield* RequestNotes
        notes.token = record.id
        return record
      })
      const open = Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        // A page of another site must not log its visitors in as someone else.
        if ((headers["sec-fetch-site"] ?? "same-origin") !== "same-origin")
          return refused(
            ...([403, "forbidden", "The token does not allow this"] as const),
            "a page of another site asks for it"
          )
        // Its session would not be believed, and a link would be used up for nothing.
        if (headers["sec-fetch-site"] === undefined && headers.origin !== undefined)
          return refused(
            ...([403, "forbidden", "The token does not allow this"] as const),
            "the browser does not say which site asks, as over plain HTTP, or behind a proxy that removes Sec-Fetch-Site: open these pages over TLS, or at 127.0.0.1 on the console's own machine"
          )
        const given = decodeGiven(decoder.decode(yield* readBody(maxBodyBytes)))
        if (given._tag === "None")
          return refused(
            ...([400, "invalid-request", "The request is not valid"] as const),
            'send a token or the part of a link after the #: {"token":"ptl_…"}'
          )
        return yield* openSession(given.value.token.trim()).pipe(
          Effect.map((token) =>
            HttpServerResponse.empty({ status: 204, headers: cookie(headers.host, token) })
          ),
          Effect.catch((error) => {
            const said = withoutCommands(error.message)
            if (error instanceof NotLoggedIn) return Effect.succeed(unauthorized(said))
            if (error instanceof NotAllowed || error instanceof QuotaReached)
              return Effect.succeed(
                refused(403, "forbidden", "The token does not allow this", said)
              )
            return Effect.succeed(
              problemResponse(
                unavailableProblem("the broker does not answer: try again", awaySeconds)
              )
            )
          })
        )
      })
      const show = Effect.gen(function* () {
        const record = yield* current
        return record === undefined
          ? unauthorized("there is no session, or it has ended: log in again")
          : HttpServerResponse.jsonUnsafe(viewOf(record))
      })
      const end = Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const record = yield* current
        if (record !== undefined)
          yield* Effect.ignore(revokeToken(record.id, { by: `session ${record.id}` }))
        return HttpServerResponse.empty({ status: 204, headers: cookie(headers.host, "") })
      })
      // A request brings none of these.
      const services = Context.omit(Scope.Scope)(yield* Effect.context<Broker | LiveTokens>())
      const served = <A, E, R>(answer: Effect.Effect<A, E, R>) =>
        Effect.provideContext(answer, services)
      return Layer.mergeAll(
        HttpRouter.add("POST", sessionPath, served(open)),
        HttpRouter.add("GET", sessionPath, served(show)),
        HttpRouter.add("DELETE", sessionPath, served(end))
      )
    })
  )
