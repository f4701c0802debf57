import { Schema } from "effect"
import type { Progress } from "./delivery.ts"
import { ErrorClass } from "./outcome.ts"
import { Types } from "./settings/endpoint-table.ts"
import { Timestamp } from "./timestamp.ts"
import { TypeIndex } from "./type-filter.ts"

/** Which deliveries that wait for their next attempt are meant; all conditions hold at once. */
export const WaitingFilter = Schema.Struct({
  /** NATS wildcards, of which one must match the event's type. */
  types: Schema.optionalKey(Types),
  /** The last answer's status, or its class: `503`, `5xx`. */
  status: Schema.optionalKey(Schema.String),
  /** The class of the last attempt's error. */
  error: Schema.optionalKey(ErrorClass),
  /** Attempted last then or later. */
  since: Schema.optionalKey(Timestamp),
  /** Attempted last then or earlier. */
  until: Schema.optionalKey(Timestamp)
})
export type WaitingFilter = typeof WaitingFilter.Type

/** Returns what tells whether a delivery of a type is meant that has come as far as its progress says. */
export const waitingMatcher = ({ error, since, status, types, until }: WaitingFilter) => {
  const index = new TypeIndex<true>()
  index.add(types ?? [], true)
  return (type: string, { lastAttemptAt, lastErrorClass, lastStatus }: Progress): boolean => {
    const last = String(lastStatus ?? "")
    return (
      (types === undefined || index.match(type).size > 0) &&
      (status === undefined || last === status || `${last.slice(0, 1)}xx` === status) &&
      (error === undefined || lastErrorClass === error) &&
      (since === undefined || (lastAttemptAt !== undefined && lastAttemptAt >= since)) &&
      (until === undefined || (lastAttemptAt !== undefined && lastAttemptAt <= until))
    )
  }
}
