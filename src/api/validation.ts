import { Cause, Effect, ErrorReporter } from "effect"
import { HttpServerRespondable } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import type { Problem } from "../domain/problem.ts"
import { boundedProblems, inputProblems } from "../operations/input.ts"
import { shortened } from "../operations/input-words.ts"
import {
  HeadersTooLarge,
  Internal,
  InvalidRequest,
  MethodNotAllowed,
  TooLarge,
  Unavailable,
  WrongHost
} from "./problems.ts"

/**
 * Every route may answer with these: its input is refused, it is asked in a way that it has not, or
 * the broker is away.
 */
export class Validation extends HttpApiMiddleware.Service<Validation>()("petrel/api/Validation", {
  error: [
    InvalidRequest,
    MethodNotAllowed,
    TooLarge,
    WrongHost,
    HeadersTooLarge,
    Unavailable,
    Internal
  ]
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

/** Returns the refusal of a request for its problems. */
export const invalidRequest = (problems: ReadonlyArray<Problem>): InvalidRequest => {
  const errors = answeredProblems(problems)
  const detail = errors.map(({ field, message }) => `${field} ${message}`).join("; ")
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
