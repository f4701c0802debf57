import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { isNoSuchMessage } from "../../broker/scan.ts"
import { firstRound } from "../../domain/delivery.ts"
import { eventId, parseEventSubject } from "../../domain/event.ts"
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
import type { Books } from "./books.ts"
import type { DeadLetterWithoutFact, MissingDeadLetter } from "./dead-letter-check.ts"
import { wronglyLeftOut } from "./left-out.ts"
import type { PendingMessage, Unreadable } from "./pending-scan.ts"
import type { Problem, ProblemKind } from "./problem.ts"
import { Problems } from "./problem.ts"
import type { Reach } from "./reach.ts"
import type { RoundAt } from "./record.ts"

/** A delivery that waits though its time is over. */
export interface Overdue extends PendingMessage {
  readonly deadline: number
}

/** What was found out beside what the facts say. */
export interface Findings {
  readonly reach: Reach
  /** Where the facts tell of changes of endpoints that the bucket does not have. */
  readonly misconfigured: ReadonlyArray<Problem>
  readonly overdue: ReadonlyArray<Overdue>
  /** Messages that wait and that this version cannot read. */
  readonly unreadable: ReadonlyArray<Unreadable>
  /** The router had not finished its event when the audit began, and need not have. */
  readonly isInHand: (round: RoundAt) => boolean
  /** Events up to here were stored so long ago that the router should have come to them. */
  readonly lastDue: number
  readonly unburied: ReadonlyArray<MissingDeadLetter>
  readonly untold: ReadonlyArray<DeadLetterWithoutFact>
}

/** How the rounds stand; each is counted once, but for `repeated` and `late`. */
export interface Tally {
  begun: number
  delivered: number
  /** Of those delivered: more than once. */
  repeated: number
  /** Of those delivered: recorded by a former owner. A dead letter of the same round is resolved. */
  late: number
  deadLettered: number
  /** By why they ended so. */
  reasons: Map<string, number>
  discarded: number
  /** Found waiting, and still in time. */
  pending: number
  overdue: number
  missing: number
}

/** Events of the range. */
export interface EventTally {
  readonly stored: number
  /** The router has not come to them. */
  readonly unreached: number
  /** Brought again by a source: they are in the event stream twice. */
  readonly repeated: number
  /** Of these: delivered again, as nobody knew any more that they had come before. */
  readonly deliveredAgain: number
}

/** What it all comes to. */
export interface Judgement {
  /** `unvouched`: nothing is wrong, as far as the streams reach; but they do not reach back far enough. */
  readonly verdict: "clean" | "problems" | "unvouched"
  readonly tally: Tally
  readonly events: EventTally
  readonly problems: Problems
}

const stateProblems: ReadonlyArray<
  readonly [kind: ProblemKind, isSo: (state: number) => boolean, says: string]
> = [
  ["contradiction", isContradicted, "it ended in two ways"],
  [
    "outcome-without-route",
    (state) => !isBegun(state),
    "facts tell of it, and none that it was to be delivered"
  ],
  ["outcome-before-route", isTooEarly, "facts tell of it before it was to be delivered"],
  [
    "attempts-out-of-sequence",
    isOutOfTurn,
    "an attempt is told of out of its turn, or one before it is not told of"
  ]
]

/**
 * Counts how everything stands, and names all that should not be so.
 *
 * @param isWanted of the problems that are listed. (Default: the first ones, whatever they are)
 */
export const judge = Effect.fnUntraced(function* (
  books: Books,
  findings: Findings,
  isWanted: (problem: Problem) => boolean = () => true
) {
  const { ledger } = books
  const { reach } = findings
  const problems = new Problems(isWanted)
  const describe = yield* describing
  const tally: Tally = {
    begun: 0,
    delivered: 0,
    repeated: 0,
    late: 0,
    deadLettered: 0,
    reasons: new Map(),
    discarded: 0,
    pending: 0,
    overdue: findings.overdue.length,
    missing: 0
  }
  const found: Array<Problem> = [
    ...books.objections,
    ...findings.misconfigured,
    ...(yield* wronglyLeftOut(books))
  ]
  const { headers, leftOut } = books
  const about = (eventSeq: number, lane: number) => ({ ...ledger.lanes.get(lane), eventSeq })

  ledger.each((eventSeq, lane, state) => {
    for (const [kind, isSo, says] of stateProblems)
      if (isSo(state)) found.push({ kind, ...about(eventSeq, lane), says })
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
  })

  const { lost } = ledger.open(findings.isInHand)
  for (const round of lost) {
    // Its event is to be handed out again: whoever gets it goes on with the plan.
    const isUnfinished = round.round === firstRound && round.eventSeq > reach.routerFloor
    tally[isUnfinished ? "overdue" : "missing"]++
    found.push(
      isUnfinished
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
    )
  }
  tally.pending =
    tally.begun -
    tally.delivered -
    tally.deadLettered -
    tally.discarded -
    tally.missing -
    tally.overdue
  for (const { deadline, endpoint, eventSeq, round, seq, stream, tenant } of findings.overdue)
    found.push({
      kind: "overdue",
      ...{ tenant, endpoint, eventSeq, round },
      says: `it waits as message ${seq} of ${stream}, though its time was over at ${new Date(deadline).toISOString()}`
    })
  for (const { about, endpoint, seq, stream, tenant } of findings.unreadable)
    found.push({
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
    })

  let unreached = 0
  for (const { eventSeq, isBegun } of ledger.unplanned()) {
    const isReached = eventSeq <= reach.routerFloor
    if (!isReached) unreached++
    if (!isReached && eventSeq > findings.lastDue) continue
    const kind = isReached ? (isBegun ? "plan-incomplete" : "unrouted") : "overdue"
    found.push({ kind, eventSeq, says: planSays(isReached, isBegun) })
  }
  for (const { dead, eventSeq, lane } of findings.unburied)
    found.push({
      kind: "dead-letter-missing",
      ...about(eventSeq, lane),
      dead,
      says: `its dead letter ${dead} is not there`
    })
  for (const { dead, endpoint, eventSeq, round, tenant } of findings.untold)
    found.push({
      kind: "dead-letter-without-fact",
      ...{ tenant, endpoint, eventSeq, round, dead },
      says: `dead letter ${dead} is there, and no fact says so`
    })
  for (const problem of found)
    if (problems.count(problem)) problems.list.push({ ...(yield* describe(problem)), ...problem })

  // What is only there because nothing else was asked for need not be checked.
  const isVouched = reach.isVouched && (reach.asked === undefined || books.planCheck.unknown === 0)
  const judgement: Judgement = {
    verdict: problems.total > 0 ? "problems" : isVouched ? "clean" : "unvouched",
    tally,
    events: {
      stored: books.events.messages,
      unreached,
      repeated: new Set([...headers.repeated, ...leftOut.keys()]).size,
      deliveredAgain: [...headers.repeated].filter(
        (seq) => !leftOut.has(seq) && seq <= reach.routerFloor
      ).length
    },
    problems
  }
  return judgement
})

const planSays = (isReached: boolean, isBegun: boolean): string =>
  isReached
    ? isBegun
      ? "the router has finished it, and a part of its plan is not in the history"
      : "the router has finished it, and no plan for it is in the history"
    : isBegun
      ? "it has been stored for long, and the router has planned a part of it only"
      : "it has been stored for long, and the router has not come to it"

/** Looks up the ids of events, which nothing else keeps: those of problems are few. */
const describing = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const known = new Map<number, { readonly event?: string; readonly tenant?: string }>()
  const look = Effect.fnUntraced(function* (seq: number) {
    const message = yield* ask("look at an event", () =>
      jsm.streams.getMessage(names.events, { seq })
    ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null)))
    if (message === null) return {}
    const { tenant } = parseEventSubject(message.subject, names)
    return {
      event: eventId(message.header.get("Nats-Msg-Id") || undefined, seq, message.time.getTime()),
      ...(tenant === undefined ? {} : { tenant })
    }
  })
  return Effect.fnUntraced(function* ({ eventSeq }: Problem) {
    if (eventSeq === undefined) return {}
    const before = known.get(eventSeq)
    if (before !== undefined) return before
    const found = yield* look(eventSeq)
    known.set(eventSeq, found)
    return found
  })
})
