import type { Problem } from "../domain/problem.ts"

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
