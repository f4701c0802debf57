import { Schema } from "effect"
import type { Problem } from "../domain/problem.ts"

/** The end of the year 9999, ms since the epoch: the broker's times have four digits for the year. */
export const maxTimeMs = 253_402_300_799_999

/** A time in ms since the epoch. Seconds or nanoseconds of today are no such time, or long ago. */
export const TimeMs = Schema.Number.check(
  Schema.makeFilter((ms: number) =>
    ms >= 0 && ms <= maxTimeMs
      ? undefined
      : "must be a time in ms since 1970, before the year 10000"
  )
)

/** A range of times at which events were stored, ms since the epoch, inclusive. */
export interface TimeRange {
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** Returns what is wrong with a range, whatever is stored. */
export const rangeProblems = ({ since, until }: TimeRange, now: number): ReadonlyArray<Problem> => {
  if (since !== undefined && until !== undefined && since > until)
    return [{ field: "since", message: "is later than `until`: nothing lies between" }]
  return since !== undefined && since > now
    ? [{ field: "since", message: "is in the future: there are no events yet" }]
    : []
}
