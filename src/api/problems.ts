import { Cause, Effect, ErrorReporter, Schema } from "effect"
import { HttpServerRespondable, HttpServerResponse } from "effect/http"
import { HttpApiError, HttpApiMiddleware } from "effect/http-api"
import { Problem } from "../domain/problem.ts"
import { boundedProblems, inputProblems } from "../operations/input.ts"
import { shortened } from "../operations/input-words.ts"

/** What the types of problems begin with (RFC 9457). */
const typeRoot = "urn:petrel:problem:"

/** One problem for each field that is wrong. */
const errors = Schema.optionalKey(Schema.Array(Problem)).annotateKey({
  description:
    "What is wrong, field by field, 20 at most. `field` is `body` for the body as a whole."
})

/** Seconds until it is worth trying again, as in the header Retry-After. */
const retryAfter = Schema.Int.annotateKey({
  description: "Seconds until it is worth trying again, as in the header Retry-After."
})

export class InvalidRequest extends HttpApiError.Problem<InvalidRequest>()(
  "InvalidRequest",
  { type: "urn:petrel:problem:invalid-request", status: 400, title: "The request is not valid" },
  { errors }
) {}

export class Unauthorized extends HttpApiError.Problem<Unauthorized>()("Unauthorized", {
  type: "urn:petrel:problem:unauthorized",
  status: 401,
  title: "A valid token is needed"
}) {}

export class Forbidden extends HttpApiError.Problem<Forbidden>()("Forbidden", {
  type: "urn:petrel:problem:forbidden",
  status: 403,
  title: "The token does not allow this"
}) {}

export class NotFound extends HttpApiError.Problem<NotFound>()("NotFound", {
  type: "urn:petrel:problem:not-found",
  status: 404,
  title: "It does not exist"
}) {}

export class MethodNotAllowed extends HttpApiError.Problem<MethodNotAllowed>()("MethodNotAllowed", {
  type: "urn:petrel:problem:method-not-allowed",
  status: 405,
  title: "The route has no such method"
}) {}

export class RequestTimeout extends HttpApiError.Problem<RequestTimeout>()("RequestTimeout", {
  type: "urn:petrel:problem:request-timeout",
  status: 408,
  title: "The request comes too slowly"
}) {}

export class Conflict extends HttpApiError.Problem<Conflict>()("Conflict", {
  type: "urn:petrel:problem:conflict",
  status: 409,
  title: "It conflicts with the present state"
}) {}

export class RevisionMismatch extends HttpApiError.Problem<RevisionMismatch>()("RevisionMismatch", {
  type: "urn:petrel:problem:revision-mismatch",
  status: 412,
  title: "A condition of the request does not hold"
}) {}

export class KeyReused extends HttpApiError.Problem<KeyReused>()("KeyReused", {
  type: "urn:petrel:problem:key-reused",
  status: 422,
  title: "The Idempotency-Key is of another request"
}) {}

export class TooLarge extends HttpApiError.Problem<TooLarge>()("TooLarge", {
  type: "urn:petrel:problem:too-large",
  status: 413,
  title: "The request is too large"
}) {}

export class UnsupportedMediaType extends HttpApiError.Problem<UnsupportedMediaType>()(
  "UnsupportedMediaType",
  {
    type: "urn:petrel:problem:unsupported-media-type",
    status: 415,
    title: "The media type of the body is not supported here"
  }
) {}

export class WrongHost extends HttpApiError.Problem<WrongHost>()("WrongHost", {
  type: "urn:petrel:problem:wrong-host",
  status: 421,
  title: "The server does not answer for this host name"
}) {}

export class TooManyRequests extends HttpApiError.Problem<TooManyRequests>()(
  "TooManyRequests",
  {
    type: "urn:petrel:problem:too-many-requests",
    status: 429,
    title: "Too many requests are made"
  },
  { retryAfter }
) {}

/** Path and query count as headers do. */
export class HeadersTooLarge extends HttpApiError.Problem<HeadersTooLarge>()("HeadersTooLarge", {
  type: "urn:petrel:problem:bad-request",
  status: 431,
  title: "The request is refused"
}) {}

export class Internal extends HttpApiError.Problem<Internal>()("Internal", {
  type: "urn:petrel:problem:internal",
  status: 500,
  title: "This is a defect of Petrel"
}) {}

export class Unavailable extends HttpApiError.Problem<Unavailable>()(
  "Unavailable",
  {
    type: "urn:petrel:problem:unavailable",
    status: 503,
    title: "It cannot be answered now"
  },
  { retryAfter }
) {}

/** A problem outside the definition of the API: of a route, a method or the connection. */
export interface BareProblem {
  readonly status: number
  /** The last part of its type: `not-found`. */
  readonly name: string
  readonly title: string
  readonly detail: string
  /** Seconds until it is worth trying again. The header Retry-After says the same. */
  readonly retryAfter?: number
}

/** Returns the problem of what cannot be answered now, and may be in some seconds. */
export const unavailableProblem = (detail: string, retryAfter: number): BareProblem => ({
  ...{ status: 503, name: "unavailable", title: "It cannot be answered now" },
  ...{ detail, retryAfter }
})

export const problemType = "application/problem+json"

/** Returns a problem as the body of an answer. */
export const problemBody = ({ detail, name, retryAfter, status, title }: BareProblem): string =>
  JSON.stringify({ type: `${typeRoot}${name}`, status, title, detail, retryAfter })

/** Returns the headers that follow from a problem. */
export const problemHeaders = ({ retryAfter }: BareProblem): Record<string, string> =>
  retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }

/** Returns the answer for a problem. */
export const problemResponse = (
  problem: BareProblem,
  headers: Record<string, string> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(problemBody(problem), {
    status: problem.status,
    contentType: problemType,
    headers: { ...problemHeaders(problem), ...headers }
  })

/** Returns a problem as it is written to a connection which has no request that can be answered. */
export const rawProblem = (problem: BareProblem): string => {
  const body = problemBody(problem)
  return [
    `HTTP/1.1 ${problem.status} Refused`,
    `content-type: ${problemType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(problemHeaders(problem)).map(([name, value]) => `${name}: ${value}`),
    "connection: close",
    "",
    body
  ].join("\r\n")
}

/**
 * Every route may answer with these: its input is refused, it is asked in a way that it has not, or
 * the broker is away.
 */
export class Validation extends HttpApiMiddleware.Service<Validation>()("petrel/api/Validation", {
  error: [InvalidRequest, MethodNotAllowed, WrongHost, HeadersTooLarge, Unavailable, Internal]
}) {}

/** Upper bound of the sentence about a request as a whole, characters. `errors` says the rest. */
const maxDetail = 2_000

/** Returns the problems as they are answered: named by their field, and so many and no longer. */
export const answeredProblems = (
  problems: ReadonlyArray<Problem>,
  whole = "body"
): ReadonlyArray<Problem> =>
  boundedProblems(problems).map(({ field, message }) => ({
    field: field === "" ? whole : field,
    message
  }))

/** What is said of the whole body, and lacks its subject. Other messages are sentences of their own. */
const ofWhole = /^(?:has|is|must) /

/** Returns the refusal of a request for its problems. */
export const invalidRequest = (problems: ReadonlyArray<Problem>): InvalidRequest => {
  const errors = answeredProblems(problems)
  const detail = errors
    .map(({ field, message }) =>
      field === "body" && !ofWhole.test(message) ? message : `${field} ${message}`
    )
    .join("; ")
  return new InvalidRequest({ detail: shortened(detail, maxDetail), errors })
}

/** `Validation`, with a problem for each field. */
export const validationLayer = HttpApiMiddleware.layerSchemaErrorTransform(
  Validation,
  ({ cause, kind }) =>
    kind === "Body" || kind === "ResponseHeaders"
      ? Effect.andThen(
          ErrorReporter.report(Cause.fail(cause)),
          HttpServerRespondable.toResponse(new Internal({ detail: "the answer could not be made" }))
        )
      : Effect.fail(invalidRequest(inputProblems(cause.issue)))
)
