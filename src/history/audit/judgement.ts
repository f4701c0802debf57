import { Effect } from "effect"
import { endOf, isBegun, isLate, isRepeated, reasonOf } from "../fold/round.ts"
import type { Books } from "./books.ts"
import { describeEvents } from "./event-description.ts"
import {
  deadLetterProblems,
  isRoutingUnfinished,
  lostProblem,
  overdueProblems,
  planProblems,
  stateProblemsOf,
  unreadableProblems
} from "./finding-problems.ts"
import type { Findings } from "./findings.ts"
import { wronglyLeftOut } from "./left-out.ts"
import type { AuditProblem } from "./problem.ts"
import { ProblemList } from "./problem.ts"
import type { AuditReach } from "./reach.ts"

/** Rounds by state. Each is counted once, except for `repeated` and `late`. */
export interface RoundTally {
  begun: number
  delivered: number
  /** Of those delivered: more than once. */
  repeated: number
  /** Of those delivered: recorded by a former owner. A dead letter of the same round is resolved. */
  late: number
  deadLettered: number
  /** Dead-lettered rounds by reason. */
  reasons: Map<string, number>
  discarded: number
  /** Found waiting, before their deadline. */
  pending: number
  overdue: number
  missing: number
}

/** Events of the range. */
export interface EventTally {
  readonly stored: number
  /** Not routed yet. */
  readonly unreached: number
  /** Published again by a source, so they are in the event stream twice. */
  readonly repeated: number
  /** Of these: delivered again, because the first ones were no longer known. */
  readonly deliveredAgain: number
}

/** The result of an audit. */
export interface Judgement {
  /** `unvouched`: no problem was found, but the streams do not reach back far enough. */
  readonly verdict: "clean" | "problems" | "unvouched"
  readonly tally: RoundTally
  readonly events: EventTally
  readonly problems: ProblemList
}

/**
 * Counts the rounds by state, and lists the problems.
 *
 * @param isWanted selects the problems that are listed. (Default: the first ones of any kind)
 */
export const judge = Effect.fnUntraced(function* (
  books: Books,
  findings: Findings,
  isWanted: (problem: AuditProblem) => boolean = () => true
) {
  const { ledger } = books
  const { reach } = findings
  const found: Array<AuditProblem> = [
    ...books.objections,
    ...findings.misconfigured,
    ...books.routed.lost(reach),
    ...findings.diverged,
    ...(yield* wronglyLeftOut(books))
  ]
  const tally = emptyTally()
  ledger.each((eventSeq, lane, state) => {
    for (const problem of stateProblemsOf(ledger, eventSeq, lane, state)) found.push(problem)
    countState(tally, state)
  })
  for (const round of ledger.open(findings.mayBeUnderWay).lost) {
    tally[isRoutingUnfinished(round, reach) ? "overdue" : "missing"]++
    found.push(lostProblem(round, reach))
  }
  tally.overdue += findings.overdue.length
  const { begun, deadLettered, delivered, discarded, missing, overdue } = tally
  tally.pending = begun - delivered - deadLettered - discarded - missing - overdue
  // Arrays of millions: as arguments of `push` they would overflow the stack.
  const all = [
    ...found,
    ...overdueProblems(findings.overdue),
    ...unreadableProblems(findings.unreadable),
    ...planProblems(ledger, findings),
    ...deadLetterProblems(ledger, findings)
  ]
  const problems = new ProblemList(isWanted)
  const describe = yield* describeEvents
  for (const problem of all)
    if (problems.count(problem)) problems.list.push({ ...(yield* describe(problem)), ...problem })

  // With a range given, only plans within it had to be checked.
  const isVouched = reach.isVouched && (reach.asked === undefined || books.planCheck.unknown === 0)
  const judgement: Judgement = {
    verdict: problems.total > 0 ? "problems" : isVouched ? "clean" : "unvouched",
    tally,
    events: tallyEvents(books, reach),
    problems
  }
  return judgement
})

const emptyTally = (): RoundTally => ({
  begun: 0,
  delivered: 0,
  repeated: 0,
  late: 0,
  deadLettered: 0,
  reasons: new Map(),
  discarded: 0,
  pending: 0,
  overdue: 0,
  missing: 0
})

const countState = (tally: RoundTally, state: number): void => {
  if (!isBegun(state)) return
  tally.begun++
  if (isRepeated(state)) tally.repeated++
  switch (endOf(state)) {
    case "delivered":
      tally.delivered++
      if (isLate(state)) tally.late++
      return
    case "dead-lettered": {
      tally.deadLettered++
      const reason = reasonOf(state)
      tally.reasons.set(reason, (tally.reasons.get(reason) ?? 0) + 1)
      return
    }
    case "discarded":
      tally.discarded++
      return
    case "none":
  }
}

const tallyEvents = (
  { events, headers, leftOut, ledger }: Books,
  reach: AuditReach
): EventTally => ({
  stored: events.messages,
  unreached: ledger.unplanned().filter(({ eventSeq }) => eventSeq > reach.routerFloor).length,
  repeated: new Set([...headers.repeated, ...leftOut.keys()]).size,
  deliveredAgain: [...headers.repeated].filter(
    (seq) => !leftOut.has(seq) && seq <= reach.routerFloor
  ).length
})
