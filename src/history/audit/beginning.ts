import type { AuditProblem } from "./problem.ts"

/** Where a stream begins, and since when nothing may be gone from it. */
export interface StreamBeginning {
  /** The first sequence that may still be stored. */
  readonly first: number
  /** Neither age nor size has dropped what was stored since then, ms since the epoch. */
  readonly dueSince: number
}

/** When a message was stored, ms since the epoch. */
export interface Mark {
  readonly seq: number
  readonly at: number
}

const hour = 3_600_000

/** Keeps the first message of each hour. They tell how old a removed message was. */
export const addMark = (marks: Array<Mark>, seq: number, at: number): void => {
  const last = marks.at(-1)
  if (last === undefined || at - last.at >= hour) marks.push({ seq, at })
}

/**
 * The first message that is gone and should not be; undefined if age or size explains all that is
 * gone.
 *
 * @param marks of the messages that were read.
 */
export const firstRemoved = (
  marks: ReadonlyArray<Mark>,
  { dueSince, first }: StreamBeginning
): number | undefined => marks.find(({ at, seq }) => seq < first && at >= dueSince)?.seq

/** Like {@link firstRemoved}; also drops the marks of messages that are gone. */
export const takeRemoved = (marks: Array<Mark>, begins: StreamBeginning): number | undefined => {
  const removed = firstRemoved(marks, begins)
  const kept = marks.findIndex(({ seq }) => seq >= begins.first)
  marks.splice(0, kept < 0 ? marks.length : kept)
  return removed
}

/** Why a gap at the beginning of a stream is a problem. */
export const goneTooEarly = "neither age nor size has dropped what was there"

/** The problem of facts that were read and are gone too early. */
export const factsGone = (from: number, to: number): AuditProblem => ({
  kind: "history-gap",
  seq: from,
  to,
  says: `${from === to ? `fact ${from} is` : `facts ${from} to ${to} are`} not in the history any more, though ${goneTooEarly}`
})
