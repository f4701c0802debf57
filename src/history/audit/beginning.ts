import type { Problem } from "./problem.ts"

/** Where a stream begins, and what should be in it. */
export interface Beginning {
  /** The first sequence that may still be there. */
  readonly first: number
  /** What was stored since then, ms since the epoch, neither age nor size has dropped. */
  readonly dueSince: number
}

/** When a message was stored, ms since the epoch. */
export interface Mark {
  readonly seq: number
  readonly at: number
}

const hour = 3_600_000

/** Keeps the first message of each hour: what is removed later shows by them how old it was. */
export const addMark = (marks: Array<Mark>, seq: number, at: number): void => {
  const last = marks.at(-1)
  if (last === undefined || at - last.at >= hour) marks.push({ seq, at })
}

/**
 * The first message that was there once, is not there any more, and should be; undefined where all
 * that is gone was old enough, or had no room.
 *
 * @param marks of what was there.
 */
export const firstRemoved = (
  marks: ReadonlyArray<Mark>,
  { dueSince, first }: Beginning
): number | undefined => marks.find(({ at, seq }) => seq < first && at >= dueSince)?.seq

/** The same, and forgets what is not there any more. */
export const takeRemoved = (marks: Array<Mark>, begins: Beginning): number | undefined => {
  const removed = firstRemoved(marks, begins)
  const kept = marks.findIndex(({ seq }) => seq >= begins.first)
  marks.splice(0, kept < 0 ? marks.length : kept)
  return removed
}

/** Of whichever stream, why what is gone from its beginning should be there. */
export const goneTooEarly = "neither age nor size has dropped what was there"

/** Facts that were read, and are gone too early. */
export const factsGone = (from: number, to: number): Problem => ({
  kind: "history-gap",
  seq: from,
  to,
  says: `${from === to ? `fact ${from} is` : `facts ${from} to ${to} are`} not in the history any more, though ${goneTooEarly}`
})
