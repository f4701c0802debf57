import type { Books } from "./books.ts"
import type { Problem } from "./problem.ts"
import type { Reach } from "./reach.ts"

/** The clocks of a cluster's nodes differ by less than this, ms. */
export const clocksApart = 5 * 60_000

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

const momentOf = (at: number): string => new Date(at).toISOString()

/**
 * What is left of a reach whose history lacks its beginning, though neither age nor size has dropped
 * it: the plans of events that the router acknowledged are not there. A quiet month alone, in which
 * the oldest facts expire and none follow, leaves no such events.
 */
export const withoutRemoved = (reach: Reach, books: Books): Reach => {
  if (books.isBeginningKnown) return reach
  books.isBeginningKnown = true
  const { history, ledger, objections } = books
  const { dueSince, first } = reach.begins.history
  if (first <= 1 || reach.firstFact > first) return reach
  const begin = history.first?.at ?? Number.POSITIVE_INFINITY
  const gone = ledger
    .unplanned()
    .filter(({ eventSeq }) => eventSeq <= reach.routerFloor)
    .map(({ eventSeq }) => ({ seq: eventSeq, at: ledger.times.of(eventSeq) }))
    .filter(({ at }) => at >= dueSince && at < begin + clocksApart)
    .sort((a, b) => a.seq - b.seq)
  const [from] = gone
  const to = gone.at(-1)
  // Those of the same minutes as the first fact that is left may lack their plan for another reason.
  if (from === undefined || to === undefined || from.at > begin) return reach
  objections.push({
    kind: "history-gap",
    seq: 1,
    to: first - 1,
    says: `facts up to ${first - 1} are not in the history any more, though ${goneTooEarly}. Events ${from.seq} to ${to.seq}, stored ${momentOf(from.at)} to ${momentOf(to.at)}, were routed, and ${gone.length} of them have no plan in it`
  })
  const firstEvent = to.seq + 1
  ledger.beginAt(firstEvent)
  return {
    ...reach,
    since: to.at + 1,
    scope: { ...reach.scope, firstEvent, isWhole: false }
  }
}
