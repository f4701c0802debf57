import type { Types } from "effect"
import { ByteSize, Cause, Clock, Effect, Exit, Option } from "effect"
import {
  HttpBody,
  HttpIncomingMessage,
  HttpRouter,
  HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import type { IpNetwork } from "effect/net"
import { shortened } from "../operations/input-words.ts"
import { withoutTokens } from "../text/plain-text.ts"
import { clientAddress, hostName } from "./addresses.ts"
import type { CrossOrigin } from "./cors.ts"
import { Insider } from "./credential.ts"
import type { BareProblem } from "./problems.ts"
import { problemResponse, problemType, unavailableProblem } from "./problems.ts"
import { BodyRefused } from "./request-body.ts"
import type { RequestDurations } from "./request-durations.ts"
import type { Notes } from "./request-notes.ts"
import { RequestNotes } from "./request-notes.ts"

/** Upper bound of a request's body, bytes, where its route has none of its own. */
const maxBodyBytes = 256 * 1024

/** Routes that whoever watches the process may ask under any name. */
const anyHost: ReadonlySet<string> = new Set(["/healthz"])

/** The routes of a server, to tell a wrong method from a wrong path. */
interface KnownRoute {
  readonly method: string
  /** With `{name}` for what varies. */
  readonly path: string
}

/** Headers of every answer: it is read as what it says it is, and kept nowhere. */
const usualHeaders = { "x-content-type-options": "nosniff", "cache-control": "no-store" }

/** Returns what matches the paths that the router takes for a route: in any case, with a slash behind. */
const patternOf = (path: string): RegExp =>
  new RegExp(
    `^${path
      .split(/\{[^}]+\}/)
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("[^/]+")}/?$`,
    "i"
  )

const pathOf = (url: string): string => url.replace(/[?#].*$/s, "")

/**
 * Returns the URL as the router reads it rightly: a `;` in the path is a letter as any other, and no
 * end of it; several slashes are one.
 */
const routable = (url: string): string => {
  const path = pathOf(url)
  return path.replaceAll(";", "%3B").replaceAll(/\/{2,}/g, "/") + url.slice(path.length)
}

/** How much of a path is logged that is none of a route, characters. */
const maxLoggedPath = 200

/** Returns an answer that refuses a request without the tokens that it may repeat. */
const withoutTokensIn = (response: HttpServerResponse.HttpServerResponse) => {
  const { body, status } = response
  if (status < firstRefusal || body._tag !== "Uint8Array") return response
  const text = Buffer.from(body.body).toString("utf8")
  const said = withoutTokens(text)
  return said === text
    ? response
    : HttpServerResponse.setBody(response, HttpBody.text(said, body.contentType))
}

const firstRefusal = 400

const wrongHost: BareProblem = {
  status: 421,
  name: "wrong-host",
  title: "The server does not answer for this host name",
  detail:
    "the header Host names another server: ask this one by the address that it listens on, or by the public URL that it was started with"
}

const defect: BareProblem = {
  status: 500,
  name: "internal",
  title: "This is a defect of Petrel",
  detail: "the request could not be handled; the log of the console says why"
}

const stopping = unavailableProblem("the console is stopping", 1)

/** Titles of answers that the HTTP library makes without a problem. */
const bareStatuses: Record<number, Omit<BareProblem, "status">> = {
  400: {
    name: "invalid-request",
    title: "The request is not valid",
    detail: "the request does not parse"
  },
  415: {
    name: "unsupported-media-type",
    title: "The media type of the body is not supported here",
    detail: "send the body as application/json"
  }
}

/** An answer. It does not fail: the type is what the library wants of those that handle all. */
type Handled = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  Types.unhandled,
  HttpServerRequest.HttpServerRequest
>

/** Turns what failed outside of the routes into a problem. */
const failed = (
  cause: Cause.Cause<unknown>,
  methodsOf: (path: string) => ReadonlyArray<string>
) => {
  for (const reason of cause.reasons) {
    const error = Cause.isFailReason(reason)
      ? reason.error
      : Cause.isDieReason(reason)
        ? reason.defect
        : undefined
    if (!HttpServerError.isHttpServerError(error)) continue
    const { reason: why } = error
    if (why._tag === "RouteNotFound") return notRouted(why.request, methodsOf)
    if (why._tag !== "RequestParseError") continue
    return why.cause instanceof BodyRefused
      ? problemResponse(why.cause.problem, why.cause.headers)
      : problemResponse(unreadable)
  }
  return undefined
}

const unreadable: BareProblem = {
  status: 400,
  name: "invalid-request",
  title: "The request is not valid",
  detail: "the body cannot be read"
}

const unreadablePath: BareProblem = {
  status: 400,
  name: "invalid-request",
  title: "The request is not valid",
  detail:
    "the path is not a valid URL: write % itself as %25, and other letters as %XX of their UTF-8"
}

const notRouted = (
  request: HttpServerRequest.HttpServerRequest,
  methodsOf: (path: string) => ReadonlyArray<string>
) => {
  const path = pathOf(request.url)
  const methods = methodsOf(path)
  // There is such a route, and the router could not decode what varies.
  if (methods.includes(request.method)) return problemResponse(unreadablePath)
  return methods.length === 0
    ? problemResponse({
        status: 404,
        name: "not-found",
        title: "It does not exist",
        detail: `there is no route ${path.slice(0, 200)}: /docs shows those that exist`
      })
    : problemResponse(
        {
          status: 405,
          name: "method-not-allowed",
          title: "The route has no such method",
          detail: `${request.method} is not possible here: ${methods.join(", ")}`
        },
        { allow: methods.join(", ") }
      )
}

/** Gives an answer of the HTTP library that is no problem document the body of one. */
const asProblem = (response: HttpServerResponse.HttpServerResponse) => {
  const bare = bareStatuses[response.status]
  return bare === undefined || response.headers["content-type"] === problemType
    ? response
    : problemResponse({ status: response.status, ...bare })
}

const clientOf = (
  { headers, remoteAddress }: HttpServerRequest.HttpServerRequest,
  proxies: ReadonlyArray<IpNetwork.IpNetwork>
) =>
  Option.match(remoteAddress, {
    onNone: () => undefined,
    onSome: (peer) => clientAddress(peer, headers["x-forwarded-for"], proxies)
  })

/**
 * What surrounds all routes: refuses other hosts, bounds bodies, turns every failure into a problem
 * document, and logs each request with who made it: the client's address, and the id of its token,
 * never the token.
 *
 * @param hosts names under which the server may be asked.
 * @param headersOf headers of the answers of some routes, by their paths.
 * @param durations gets each request that was answered.
 * @param proxies whose X-Forwarded-For is believed.
 * @param origins whose pages may ask.
 */
export const middleware = (
  routes: ReadonlyArray<KnownRoute>,
  hosts: ReadonlySet<string>,
  headersOf: Record<string, Record<string, string>>,
  durations: RequestDurations,
  proxies: ReadonlyArray<IpNetwork.IpNetwork>,
  origins: CrossOrigin
) => {
  const patterns = routes.map(({ method, path }) => ({ method, path, pattern: patternOf(path) }))
  const routeOf = (path: string) => patterns.find(({ pattern }) => pattern.test(path))?.path
  const methodsOf = (path: string) => [
    ...new Set(
      patterns.flatMap(({ method, pattern }) => (pattern.test(path) ? [method.toUpperCase()] : []))
    )
  ]
  const mayAsk = ({ headers, url }: HttpServerRequest.HttpServerRequest) =>
    hosts.has(hostName(headers.host ?? "")) || anyHost.has(pathOf(url))

  const answer = (exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>) =>
    Effect.gen(function* () {
      if (Exit.isSuccess(exit)) return asProblem(exit.value)
      const { cause } = exit
      if (Cause.hasInterruptsOnly(cause)) return problemResponse(stopping)
      const response = failed(cause, methodsOf)
      if (response !== undefined) return response
      yield* Effect.logError("a request could not be handled", cause)
      return problemResponse(defect)
    })

  return HttpRouter.use((router) =>
    router.addGlobalMiddleware(
      (route): Handled =>
        Effect.gen(function* () {
          const given = yield* HttpServerRequest.HttpServerRequest
          const url = routable(given.url)
          const request = url === given.url ? given : given.modify({ url })
          const began = yield* Clock.currentTimeMillis
          const notes: Notes = { token: undefined, status: undefined }
          const insider = yield* Insider
          const preflight = (): HttpServerResponse.HttpServerResponse | undefined =>
            origins.preflight(request, () => methodsOf(pathOf(request.url)))
          const response =
            insider !== undefined || mayAsk(request)
              ? (preflight() ??
                (yield* route.pipe(
                  Effect.provideService(HttpServerRequest.HttpServerRequest, request),
                  Effect.provideService(RequestNotes, notes),
                  Effect.provideService(
                    HttpIncomingMessage.MaxBodySize,
                    ByteSize.fromInputUnsafe(maxBodyBytes)
                  ),
                  Effect.exit,
                  Effect.flatMap(answer)
                )))
              : problemResponse(wrongHost)
          const ms = (yield* Clock.currentTimeMillis) - began
          const { method } = request
          // An operation may set another status than that of its answer's schema, which comes last.
          const { status = response.status } = notes
          const path = pathOf(request.url)
          const matched = routeOf(path)
          durations.note({ method, route: matched, status, ms })
          // What varies in a path may be anything, also a secret that was put there by mistake.
          yield* Effect.logInfo("request", {
            method,
            ...(matched === undefined
              ? { path: withoutTokens(shortened(path, maxLoggedPath)) }
              : { route: matched }),
            status,
            ms,
            client: insider?.by ?? clientOf(request, proxies),
            ...(notes.token === undefined ? {} : { tokenId: notes.token })
          })
          return HttpServerResponse.setHeaders(withoutTokensIn(response), {
            ...usualHeaders,
            ...(response.headers["cache-control"] === undefined
              ? {}
              : { "cache-control": response.headers["cache-control"] }),
            ...origins.headersFor(request.headers),
            ...(matched === undefined ? {} : headersOf[matched])
          })
        })
    )
  )
}
