import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { headerOf } from "../../broker/headers.ts"
import { firstRound } from "../../domain/delivery.ts"
import { eventId, parseEventSubject } from "../../domain/event.ts"
import { givenId } from "../../domain/intake.ts"
import type { RoundAt } from "../fact-record.ts"
import {
  endOf,
  isBegun,
  isContradicted,
  isLate,
  isOutOfTurn,
  isRepeated,
  isTooEarly,
  reasonOf
} from "../fold/round.ts"
import type { AuditReading } from "./audit-reading.ts"
import type { DeadLetterWithoutFact, MissingDeadLetter } from "./dead-letter-check.ts"
import type { Ledger } from "./ledger.ts"
import { wronglyLeftOut } from "./lost-events.ts"
import type { PendingMessage, UnreadableMessage } from "./pending-scan.ts"
import { type AuditProblem, type ProblemKind, ProblemList } from "./problem.ts"
import { type AuditReach, reachesNoEvent } from "./reach.ts"

/** A delivery that waits although its deadline has passed. */
export interface Overdue extends PendingMessage {
  readonly deadline: number
}

/** What the audit found in addition to the facts. */
export interface Findings {
  readonly reach: AuditReach
  /** Changes of endpoints that the history has and the bucket has not. */
  readonly misconfigured: ReadonlyArray<AuditProblem>
  /** Sources that lost what was copied from them. */
  readonly diverged: ReadonlyArray<AuditProblem>
  /** What was published to tenants' streams and is no event. */
  readonly notCopied: ReadonlyArray<AuditProblem>
  /** What came in and is no event, and what was removed of it. */
  readonly incoming: ReadonlyArray<AuditProblem>
  readonly overdue: ReadonlyArray<Overdue>
  /** Waiting messages that this version cannot read. */
  readonly unreadable: ReadonlyArray<UnreadableMessage>
  /** True if the router need not have finished the round's event yet. */
  readonly mayBeUnderWay: (round: RoundAt) => boolean
  /** Events up to this sequence should have been routed. */
  readonly lastDue: number
  readonly missingDeadLetters: ReadonlyArray<MissingDeadLetter>
  readonly deadLettersWithoutFact: ReadonlyArray<DeadLetterWithoutFact>
}

const stateProblems: ReadonlyArray<
  readonly [kind: ProblemKind, isSo: (state: number) => boolean, says: string]
> = [
  ["contradiction", isContradicted, "it ended in two ways"],
  [
    "event-gone",
    (state) => reasonOf(state) === "event-gone",
    "its event was removed while it waited for its endpoint, so that nothing could be sent"
  ],
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
const stateProblemsOf = (
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
const isRoutingUnfinished = ({ eventSeq, round }: RoundAt, { routerFloor }: AuditReach): boolean =>
  round === firstRound && eventSeq > routerFloor

/** A round that has not ended and was found nowhere. */
const lostProblem = (round: RoundAt, reach: AuditReach): AuditProblem =>
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

const overdueProblems = (overdue: ReadonlyArray<Overdue>): ReadonlyArray<AuditProblem> =>
  overdue.map(({ deadline, endpoint, eventSeq, round, seq, stream, tenant }) => ({
    kind: "overdue",
    ...{ tenant, endpoint, eventSeq, round },
    says: `it waits as message ${seq} of ${stream}, though its time was over at ${new Date(deadline).toISOString()}`
  }))

const unreadableProblems = (
  unreadable: ReadonlyArray<UnreadableMessage>
): ReadonlyArray<AuditProblem> =>
  unreadable.map(({ about, endpoint, seq, stream, tenant }) => ({
    kind: "unreadable-message",
    ...{ tenant, endpoint, stream, streamSeq: seq },
    ...(about === undefined
      ? {
          says: `message ${seq} of ${stream}, for ${tenant}/${endpoint}, cannot be read by this version`
        }
      : {
          ...{ eventSeq: about.eventSeq, round: about.round },
          says: `it waits as message ${seq} of ${stream}, which this version cannot read`
        })
  }))

/** Events that should have been routed and have no complete plan. */
const planProblems = (ledger: Ledger, { lastDue, reach }: Findings): ReadonlyArray<AuditProblem> =>
  ledger.unplanned().flatMap(({ eventSeq, isBegun }) => {
    const isReached = eventSeq <= reach.routerFloor
    if (!isReached && eventSeq > lastDue) return []
    const kind = isReached ? (isBegun ? "plan-incomplete" : "unrouted") : "overdue"
    return [{ kind, eventSeq, says: planSays(isReached, isBegun) }]
  })

const deadLetterProblems = (
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

/** Reads the ids of the events that problems name: the ledger does not keep them. */
const describeEvents = Effect.gen(function* () {
  const { names, readMessage } = yield* Broker
  const known = new Map<number, { readonly event?: string; readonly tenant?: string }>()
  const look = Effect.fnUntraced(function* (seq: number) {
    const message = yield* readMessage("look at an event", names.events, { seq })
    if (message === null) return {}
    const { tenant } = parseEventSubject(message.subject, names)
    return {
      event: eventId(givenId(headerOf(message.header)), seq, message.time.getTime()),
      ...(tenant === undefined ? {} : { tenant })
    }
  })
  return Effect.fnUntraced(function* ({ eventSeq }: AuditProblem) {
    if (eventSeq === undefined) return {}
    const before = known.get(eventSeq)
    if (before !== undefined) return before
    const found = yield* look(eventSeq)
    known.set(eventSeq, found)
    return found
  })
})

/** Rounds by state. Each is counted once, except for `repeated` and `late`. */
interface RoundTally {
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
interface EventTally {
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
  reading: AuditReading,
  findings: Findings,
  isWanted: (problem: AuditProblem) => boolean = () => true
) {
  const { ledger } = reading
  const { reach } = findings
  const found: Array<AuditProblem> = [
    ...reading.objections,
    ...findings.misconfigured,
    ...reading.routed.lost(reach),
    ...findings.diverged,
    ...findings.notCopied,
    ...findings.incoming,
    ...(yield* wronglyLeftOut(reading))
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
  const isVouched =
    reach.isVouched &&
    !reachesNoEvent(reach) &&
    (reach.asked === undefined || reading.planCheck.unknown === 0)
  const judgement: Judgement = {
    verdict: problems.total > 0 ? "problems" : isVouched ? "clean" : "unvouched",
    tally,
    events: tallyEvents(reading, reach),
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
  { events, headers, leftOut, ledger }: AuditReading,
  reach: AuditReach
): EventTally => ({
  stored: events.messages,
  unreached: ledger.unplanned().filter(({ eventSeq }) => eventSeq > reach.routerFloor).length,
  repeated: new Set([...headers.repeated, ...leftOut.keys()]).size,
  deliveredAgain: [...headers.repeated].filter(
    (seq) => !leftOut.has(seq) && seq <= reach.routerFloor
  ).length
})
