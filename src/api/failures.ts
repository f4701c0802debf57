import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { BrokerError, isForbidden } from "../broker/broker-error.ts"
import { Invalid } from "../domain/problem.ts"
import { Busy, NotAllowed } from "../operations/caller.ts"
import { KeyInUse } from "../operations/idempotency-key.ts"
import {
  absences,
  brokerFailures,
  EventNotStored,
  type Refusal,
  refusals
} from "../operations/refusals.ts"
import { LogUnavailable } from "../projection/delivery-log.ts"
import { withoutCommands } from "../text/plain-text.ts"
import {
  Conflict,
  Forbidden,
  InvalidRequest,
  invalidRequest,
  KeyReused,
  NotFound,
  RevisionMismatch,
  TooLarge,
  TooManyRequests,
  Unavailable
} from "./problems.ts"
import { withHeader } from "./request-notes.ts"

/** Seconds after which it is worth trying again what found no broker, or no space. */
export const awaySeconds = 2

/** Answers 503 with the header Retry-After. */
export const unavailable = (
  detail: string,
  seconds = awaySeconds
): Effect.Effect<never, Unavailable, HttpServerRequest.HttpServerRequest> =>
  withHeader("retry-after", String(seconds)).pipe(
    Effect.andThen(Effect.fail(new Unavailable({ detail, retryAfter: seconds })))
  )

/** Answers 429 with the header Retry-After. */
export const tooManyRequests = (
  detail: string,
  seconds: number
): Effect.Effect<never, TooManyRequests, HttpServerRequest.HttpServerRequest> =>
  withHeader("retry-after", String(seconds)).pipe(
    Effect.andThen(Effect.fail(new TooManyRequests({ detail, retryAfter: seconds })))
  )

const textOf = (error: unknown): string =>
  withoutCommands(error instanceof Error ? error.message : String(error))

/** How a refusal of an operation is answered. */
export const refusalProblems = {
  "not-found": NotFound,
  conflict: Conflict,
  "key-reused": KeyReused,
  "revision-mismatch": RevisionMismatch
} satisfies Record<Refusal, unknown>

/** Problems that any operation may be answered with. */
type Problems = Forbidden | InvalidRequest | TooLarge | TooManyRequests | Unavailable

/** Failures that are problems already. */
const asTheyAre = [InvalidRequest, TooLarge, TooManyRequests, Unavailable]

/** The problem that a failure of any operation is. Others are defects. */
const problemOf = (
  error: unknown
): Effect.Effect<never, Problems, HttpServerRequest.HttpServerRequest> => {
  if (error instanceof Invalid)
    return Effect.fail(
      invalidRequest(
        error.problems.map(({ field, message }) => ({ field, message: withoutCommands(message) }))
      )
    )
  const problem = asTheyAre.find((kind) => error instanceof kind)
  if (problem !== undefined) return Effect.fail(error as InstanceType<typeof problem>)
  if (error instanceof NotAllowed) return Effect.fail(new Forbidden({ detail: error.message }))
  if (error instanceof EventNotStored && error.reason === "too-large")
    return Effect.fail(new TooLarge({ detail: textOf(error) }))
  if (error instanceof Busy || error instanceof LogUnavailable)
    return unavailable(textOf(error), error.retryAfter)
  if (error instanceof EventNotStored || absences.some((kind) => error instanceof kind))
    return unavailable(textOf(error))
  if (!brokerFailures.some((kind) => error instanceof kind)) return Effect.die(error)
  const isRefused = error instanceof BrokerError && isForbidden(error)
  return Effect.andThen(
    Effect.logWarning(
      isRefused
        ? "the broker does not permit what a request needs: give the user its permissions (see nats.conf)"
        : "a request found no answer of the broker",
      { why: textOf(error) }
    ),
    unavailable(
      isRefused
        ? "the broker does not let this console do that now: its log says what it may not"
        : "the broker does not answer now: try again"
    )
  )
}

/** Turns the failures of an operation into problems: its refusals, and those of any operation. */
export const answeringProblems = <A, R>(
  named: ReadonlyArray<Refusal>,
  operation: Effect.Effect<A, unknown, R>
) =>
  Effect.catch(
    operation,
    (
      error
    ): Effect.Effect<
      never,
      Problems | InstanceType<(typeof refusalProblems)[Refusal]>,
      HttpServerRequest.HttpServerRequest
    > => {
      const refusal = named.find((one) => refusals[one].some((kind) => error instanceof kind))
      if (refusal === undefined) return problemOf(error)
      const refused = Effect.fail(new refusalProblems[refusal]({ detail: textOf(error) }))
      return error instanceof KeyInUse
        ? Effect.andThen(withHeader("retry-after", String(error.retryAfter)), refused)
        : refused
    }
  )
