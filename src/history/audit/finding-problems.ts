import { firstRound } from "../../domain/delivery.ts"
import type { RoundAt } from "../fact-record.ts"
import { isBegun, isContradicted, isOutOfTurn, isTooEarly } from "../fold/round.ts"
import type { Findings, Overdue } from "./findings.ts"
import type { Ledger } from "./ledger.ts"
import type { UnreadableMessage } from "./pending-scan.ts"
import type { AuditProblem, ProblemKind } from "./problem.ts"
import type { AuditReach } from "./reach.ts"

const stateProblems: ReadonlyArray<
  readonly [kind: ProblemKind, isSo: (state: number) => boolean, says: string]
> = [
  ["contradiction", isContradicted, "it ended in two ways"],
  ["outcome-without-route", (state) => !isBegun(state), "it has facts, and no fact planned it"],
  ["outcome-before-route", isTooEarly, "a fact about it comes before the fact that planned it"],
  [
    "attempts-out-of-sequence",
    isOutOfTurn,
    "an attempt is recorded out of sequence, or an earlier one is not recorded"
  ]
]

const aboutOf = (ledger: Ledger, eventSeq: number, lane: number) => ({
  ...ledger.lanes.get(lane),
  eventSeq
})

/** What is wrong with a round's state. */
export const stateProblemsOf = (
  ledger: Ledger,
  eventSeq: number,
  lane: number,
  state: number
): ReadonlyArray<AuditProblem> => {
  let found = none
  for (const [kind, isSo, says] of stateProblems)
    if (isSo(state)) found = [...found, { kind, ...aboutOf(ledger, eventSeq, lane), says }]
  return found
}
const none: ReadonlyArray<AuditProblem> = []

/** True if the round's event is to be delivered again: its next router continues the plan. */
export const isRoutingUnfinished = (
  { eventSeq, round }: RoundAt,
  { routerFloor }: AuditReach
): boolean => round === firstRound && eventSeq > routerFloor

/** A round that has not ended and was found nowhere. */
export const lostProblem = (round: RoundAt, reach: AuditReach): AuditProblem =>
  isRoutingUnfinished(round, reach)
    ? {
        kind: "overdue",
        ...round,
        says: "its event has been stored for long, and the router has not finished it"
      }
    : {
        kind: "missing",
        ...round,
        says: "it was to be delivered, has not ended, and waits nowhere"
      }

export const overdueProblems = (overdue: ReadonlyArray<Overdue>): ReadonlyArray<AuditProblem> =>
  overdue.map(({ deadline, endpoint, eventSeq, round, seq, stream, tenant }) => ({
    kind: "overdue",
    ...{ tenant, endpoint, eventSeq, round },
    says: `it waits as message ${seq} of ${stream}, though its time was over at ${new Date(deadline).toISOString()}`
  }))

export const unreadableProblems = (
  unreadable: ReadonlyArray<UnreadableMessage>
): ReadonlyArray<AuditProblem> =>
  unreadable.map(({ about, endpoint, seq, stream, tenant }) => ({
    kind: "unreadable-message",
    ...{ tenant, endpoint, stream, streamSeq: seq },
    ...(about === undefined
      ? {
          says: `message ${seq} of ${stream}, for ${tenant}/${endpoint}, is unreadable to this version`
        }
      : {
          ...{ eventSeq: about.eventSeq, round: about.round },
          says: `it waits as message ${seq} of ${stream}, which is unreadable to this version`
        })
  }))

/** Events that should have been routed and have no complete plan. */
export const planProblems = (
  ledger: Ledger,
  { lastDue, reach }: Findings
): ReadonlyArray<AuditProblem> =>
  ledger.unplanned().flatMap(({ eventSeq, isBegun }) => {
    const isReached = eventSeq <= reach.routerFloor
    if (!isReached && eventSeq > lastDue) return []
    const kind = isReached ? (isBegun ? "plan-incomplete" : "unrouted") : "overdue"
    return [{ kind, eventSeq, says: planSays(isReached, isBegun) }]
  })

export const deadLetterProblems = (
  ledger: Ledger,
  { deadLettersWithoutFact, missingDeadLetters }: Findings
): ReadonlyArray<AuditProblem> => [
  ...missingDeadLetters.map(
    ({ dead, eventSeq, lane }): AuditProblem => ({
      kind: "dead-letter-missing",
      ...aboutOf(ledger, eventSeq, lane),
      dead,
      says: `its dead letter ${dead} is not there`
    })
  ),
  ...deadLettersWithoutFact.map(
    ({ dead, endpoint, eventSeq, round, tenant }): AuditProblem => ({
      kind: "dead-letter-without-fact",
      ...{ tenant, endpoint, eventSeq, round, dead },
      says: `dead letter ${dead} is there, and no fact says so`
    })
  )
]

const planSays = (isReached: boolean, isBegun: boolean): string =>
  isReached
    ? isBegun
      ? "the router has finished it, and a part of its plan is not in the history"
      : "the router has finished it, and no plan for it is in the history"
    : isBegun
      ? "it has been stored for long, and the router has planned a part of it only"
      : "it has been stored for long, and the router has not come to it"
