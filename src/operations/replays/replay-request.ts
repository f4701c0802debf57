import { Schema } from "effect"
import type { Problem } from "../../domain/problem.ts"
import { Types } from "../../domain/settings/endpoint-table.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { isToken } from "../../domain/token.ts"
import { EndpointName } from "../endpoints/endpoint-settings.ts"
import { rangeProblems } from "../parameters.ts"

/** Returns why a replay cannot have a name, or undefined. */
export const replayIdProblem = (id: string): string | undefined =>
  isToken(id) && id.length <= 40 ? undefined : "must be 1 to 40 letters, digits, - or _"

/** The name of a replay: the same again goes on with it. */
const ReplayId = Schema.String.check(Schema.makeFilter(replayIdProblem))

/** Longest id of an event, in characters. */
const maxEventIdLength = 255

/** Which events of the past are sent to an endpoint. Times in ms since the epoch. */
export const ReplayRequest = Schema.Struct({
  to: EndpointName,
  /** Only the event of this id. (Default: all) */
  event: Schema.optional(Schema.NonEmptyString.check(Schema.isMaxLength(maxEventIdLength))),
  /**
   * NATS wildcards, of which one must match. (Default: the types that the endpoint wants; of one
   * event, any)
   */
  types: Schema.optional(Types),
  /** Events stored then or later. (Default: all there are) */
  since: Schema.optional(Timestamp),
  /** Events stored then or earlier. (Default: now) */
  until: Schema.optional(Timestamp),
  /** Only what the endpoint was not sent because it was disabled then. */
  skipped: Schema.optional(Schema.Boolean),
  /** Not what the endpoint has taken, nor what is on its way there. */
  onlyMissing: Schema.optional(Schema.Boolean),
  /** (Default: made from the other fields) */
  id: Schema.optional(ReplayId),
  /**
   * What was asked for, literally, if the times above were computed from it: `1h` asks for the same
   * an hour later. (Default: the fields themselves)
   */
  asked: Schema.optional(Schema.String)
})
export type ReplayRequest = typeof ReplayRequest.Type

/** Returns what is wrong with a request. */
export const replayProblems = (
  { event, onlyMissing, since, skipped, until }: Omit<ReplayRequest, "to">,
  now: number
): ReadonlyArray<Problem> => {
  if (event !== undefined && (skipped === true || onlyMissing === true))
    return [
      {
        field: "event",
        message: "names one event: leave out `skipped` and `onlyMissing`, which choose among many"
      }
    ]
  return rangeProblems({ since, until }, now)
}
