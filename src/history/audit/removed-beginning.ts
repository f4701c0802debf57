import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import { goneTooEarly } from "./beginning.ts"
import type { Books } from "./books.ts"
import type { AuditReach } from "./reach.ts"

const momentOf = (at: number): string => new Date(at).toISOString()

/**
 * Narrows the reach if the beginning of the history was removed although neither age nor size has
 * dropped it. The sign of that: events that the router acknowledged have no plan. A quiet month, in
 * which the oldest facts expire and none follow, leaves no such events.
 */
export const withoutRemoved = (reach: AuditReach, books: Books): AuditReach => {
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
    .filter(({ at }) => at >= dueSince && at < begin + maxClockSkewMs)
    .sort((a, b) => a.seq - b.seq)
  const [from] = gone
  const to = gone.at(-1)
  // Events of the same minutes as the first remaining fact may have no plan for another reason.
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
