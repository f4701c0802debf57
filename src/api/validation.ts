import { Cause, Effect, ErrorReporter } from "effect"
import { HttpServerRespondable } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import type { Problem } from "../domain/problem.ts"
import { inputProblems } from "../operations/input.ts"
import { Internal, InvalidRequest, TooLarge, Unavailable } from "./problems.ts"

/** Every route may answer with these: its input is refused, or the broker is away. */
export class Validation extends HttpApiMiddleware.Service<Validation>()("petrel/api/Validation", {
  error: [InvalidRequest, TooLarge, Unavailable, Internal]
}) {}

/** Returns the refusal of a request for its problems. */
export const invalidRequest = (problems: ReadonlyArray<Problem>): InvalidRequest =>
  new InvalidRequest({
    detail: problems.map(({ field, message }) => `${field} ${message}`.trim()).join("; "),
    errors: problems
  })

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
