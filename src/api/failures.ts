import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { BrokerError } from "../broker/broker-error.ts"
import { TopologyError } from "../broker/installed.ts"
import { PublishError } from "../broker/publisher.ts"
import { CommandFailed } from "../cluster/command-owner.ts"
import { Invalid } from "../domain/problem.ts"
import { EndpointChanged, EndpointExists, EndpointNotFound } from "../endpoints/endpoint-store.ts"
import { EndpointUnreadable } from "../endpoints/endpoint-value.ts"
import { DeadLettersNotFound } from "../operations/dead-letters/dead-letter-selection.ts"
import { DeliveryNotFound } from "../operations/deliveries/explain-delivery.ts"
import { JobNotFound } from "../operations/jobs/manage-jobs.ts"
import { EventNotKept } from "../operations/replays/replay-events.ts"
import { TokenNotFound } from "../operations/tokens/manage-tokens.ts"
import { LogUnavailable } from "../projection/delivery-log.ts"
import { withHeader } from "./answer.ts"
import { Conflict, InvalidRequest, NotFound, RevisionMismatch, Unavailable } from "./problems.ts"
import { invalidRequest } from "./validation.ts"

/** Seconds after which a request is worth repeating that found no broker. */
const retryAfter = 2

/**
 * Returns a message without what it says of the command line: whoever reads it here has none.
 */
export const withoutCommands = (message: string): string =>
  message.replace(/(?:[:;,]| \()(?: [\w' ]+)? ?`petrel [^`]*`[^;:]*/g, "")

const notFound: ReadonlyArray<(error: unknown) => boolean> = [
  EndpointNotFound,
  DeadLettersNotFound,
  DeliveryNotFound,
  EventNotKept,
  JobNotFound,
  TokenNotFound
].map((kind) => (error: unknown) => error instanceof kind)

/** Answers 503 with the header Retry-After. */
export const unavailable = (
  detail: string,
  seconds = retryAfter
): Effect.Effect<never, Unavailable, HttpServerRequest.HttpServerRequest> =>
  withHeader("retry-after", String(seconds)).pipe(
    Effect.andThen(Effect.fail(new Unavailable({ detail, retryAfter: seconds })))
  )

/** Problems that any route may answer with. */
type Common = InvalidRequest | Unavailable
/** Problems of routes that are about something by its name. */
type OfNamed = Common | NotFound

type Answered<A, P, R> = Effect.Effect<A, P, R | HttpServerRequest.HttpServerRequest>

const textOf = (error: unknown): string =>
  withoutCommands(error instanceof Error ? error.message : String(error))

const common = (error: unknown): Answered<never, Common, never> => {
  if (error instanceof Invalid)
    return Effect.fail(
      invalidRequest(
        error.problems.map(({ field, message }) => ({ field, message: withoutCommands(message) }))
      )
    )
  if (error instanceof InvalidRequest || error instanceof Unavailable) return Effect.fail(error)
  if (error instanceof CommandFailed || error instanceof LogUnavailable)
    return unavailable(textOf(error))
  const isAway = [BrokerError, PublishError, TopologyError].some((kind) => error instanceof kind)
  if (!isAway) return Effect.die(error)
  return Effect.andThen(
    Effect.logWarning("a request found no answer of the broker", { why: textOf(error) }),
    unavailable("the broker does not answer now: try again")
  )
}

const ofNamed = (error: unknown): Answered<never, OfNamed, never> =>
  notFound.some((is) => is(error))
    ? Effect.fail(new NotFound({ detail: textOf(error) }))
    : common(error)

const ofChange = (
  error: unknown
): Answered<never, OfNamed | Conflict | RevisionMismatch, never> => {
  if (error instanceof Conflict) return Effect.fail(error)
  if (error instanceof EndpointChanged)
    return Effect.fail(new RevisionMismatch({ detail: textOf(error) }))
  return error instanceof EndpointExists || error instanceof EndpointUnreadable
    ? Effect.fail(new Conflict({ detail: textOf(error) }))
    : ofNamed(error)
}

/** Turns the failures of an operation that is about nothing by its name into problems. */
export const listing = <A, E, R>(operation: Effect.Effect<A, E, R>): Answered<A, Common, R> =>
  Effect.catch(operation, common)

/** Turns the failures of an operation that reads something into problems. */
export const reading = <A, E, R>(operation: Effect.Effect<A, E, R>): Answered<A, OfNamed, R> =>
  Effect.catch(operation, ofNamed)

/** Turns the failures of an operation that does something once into problems. */
export const acting = <A, E, R>(
  operation: Effect.Effect<A, E, R>
): Answered<A, OfNamed | Conflict, R> =>
  Effect.catch(
    operation,
    (error): Answered<never, OfNamed | Conflict, never> =>
      error instanceof Conflict ? Effect.fail(error) : ofNamed(error)
  )

/** Turns the failures of an operation that changes an endpoint into problems. */
export const changing = <A, E, R>(
  operation: Effect.Effect<A, E, R>
): Answered<A, OfNamed | Conflict | RevisionMismatch, R> => Effect.catch(operation, ofChange)
