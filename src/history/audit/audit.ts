import { Clock, Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { readChanges, readLayout, TopologyError } from "../../broker/installed.ts"
import { firstSince } from "../../broker/scan.ts"
import { firstRound } from "../../domain/delivery.ts"
import { hasEnded } from "../fold/round.ts"
import { makeAttemptTimes } from "./attempt-times.ts"
import type { Books } from "./books.ts"
import { openBooks } from "./books.ts"
import { readCautions } from "./cautions.ts"
import { compareCircuits } from "./circuits.ts"
import { compareConfiguration } from "./configuration-reading.ts"
import { compareDeadLetters, stillMissing, stillWithoutFact } from "./dead-letter-check.ts"
import type { Findings, Overdue } from "./judgement.ts"
import { judge } from "./judgement.ts"
import type { PendingMessage, Unreadable } from "./pending-scan.ts"
import { isStillThere, scanAll, scanFor } from "./pending-scan.ts"
import type { AuditRange, Reach } from "./reach.ts"
import { readReach, withoutExpired } from "./reach.ts"
import type { RoundAt } from "./record.ts"
import { roundName } from "./record.ts"
import { withoutRemoved } from "./removed-beginning.ts"

export interface AuditOptions extends AuditRange {
  /** Sequences of EVENTS and HISTORY up to which another audit has a fingerprint. */
  readonly marks?: { readonly events: number; readonly history: number } | undefined
  /** Called once, with what shows how far the reading has come. */
  readonly onBegin?: ((books: Books) => void) | undefined
}

/**
 * What waits past its deadline, or for the router, for longer than this is not well, ms. What may be
 * with a request has the time that one may take besides.
 */
const overdueAfterMs = 15 * 60_000
/** Looks for what was not found, an ack_wait apart, before it is called missing. */
const maxSecondLooks = 2
/** Unreadable messages of which it is asked at the same time whether they are still there. */
const maxConcurrentReads = 16

/**
 * Shows from the streams and nothing else what became of each delivery in a range. Nothing stands
 * still meanwhile, so the order matters: which events there are, then the facts, then what waits. What
 * has neither ended nor was found waiting is looked for again, after an ack_wait, with the facts that
 * were stored meanwhile and at the streams' leaders, before it is called missing.
 */
export const audit = Effect.fnUntraced(function* (options: AuditOptions) {
  const whole = yield* readReach(options)
  const books = yield* openBooks(whole, options.marks)
  options.onBegin?.(books)
  const findings = yield* examine(books, whole)
  const { reach } = findings
  const { ackWait } = yield* readLayout
  const remarks = yield* compareCircuits(books, ackWait)
  const cautions = yield* readCautions(books.headers)
  return { reach, books, findings, remarks, cautions, judgement: yield* judge(books, findings) }
})

/**
 * Reads what is new, and looks for what has not ended. Fails where the number of partitions was
 * changed meanwhile, for nothing lies where it should then.
 */
export const examine = Effect.fnUntraced(function* (books: Books, whole: Reach) {
  const { ackWait, partitions } = yield* readLayout
  const { epoch } = (yield* readChanges).changes
  const { names } = yield* Broker
  const { ledger } = books
  books.beginAt(whole)
  yield* books.readEvents(whole.scope.lastEvent)
  yield* books.readConfiguration
  yield* books.readHistory
  const left = yield* withoutExpired(whole, books.history.first)
  if (left !== whole) ledger.beginAt(left.scope.firstEvent)
  const reach = withoutRemoved(left, books)

  const overdue = new Map<string, Overdue>()
  const now = yield* Clock.currentTimeMillis
  const lastDue = (yield* firstSince(names.events, now - overdueAfterMs)) - 1
  const times = yield* makeAttemptTimes
  /** By how long an attempt may take, the last event that has been stored for longer than that and the grace. */
  const lastDueBy = new Map<number, number>()
  const learn = Effect.fnUntraced(function* (all: Iterable<RoundAt>) {
    const list = [...all].filter(
      ({ eventSeq, round }) => round === firstRound && eventSeq > reach.routerFloor
    )
    yield* times.learn(list)
    for (const time of new Set(list.map(times.of)))
      if (!lastDueBy.has(time))
        lastDueBy.set(time, (yield* firstSince(names.events, now - overdueAfterMs - time)) - 1)
  })
  const isInHand = (round: RoundAt) =>
    round.eventSeq > Math.max(reach.routerFloor, lastDueBy.get(times.of(round)) ?? lastDue)
  /** What has not been found; not what may be with a request that lasts. */
  const findLost = Effect.gen(function* () {
    yield* learn(ledger.open(isInHand).lost)
    return ledger.open(isInHand).lost
  })
  const see = (waiter: PendingMessage) => {
    const { deadline } = waiter
    if (!ledger.found(waiter) || deadline === undefined || deadline + overdueAfterMs >= now) return
    overdue.set(roundName(waiter), { ...waiter, deadline })
  }
  const unreadable = new Map<string, Unreadable>()
  const seeUnreadable = (message: Unreadable) => {
    const { tenant = message.tenant } = reach.scope
    if (message.tenant === tenant) unreadable.set(`${message.stream}:${message.seq}`, message)
  }
  ledger.beginLooking()
  yield* scanAll(partitions, see, seeUnreadable)
  const letters = yield* compareDeadLetters(ledger)
  yield* books.readHistory

  for (let look = 1; look <= maxSecondLooks; look++) {
    const lost = yield* findLost
    const untold = stillWithoutFact(letters.untold, ledger)
    if (
      lost.length + untold.length + letters.unburied.length + overdue.size === 0 &&
      !books.strays.isWaiting
    )
      break
    yield* Effect.sleep(ackWait)
    yield* scanFor(lost, partitions, see)
    yield* books.readHistory
  }
  yield* times.learn(overdue.values())
  let misconfigured = yield* compareConfiguration(books.planCheck, reach.scope.tenant)
  if (misconfigured.length > 0) {
    yield* Effect.sleep(ackWait)
    yield* books.readHistory
    misconfigured = yield* compareConfiguration(books.planCheck, reach.scope.tenant)
  }
  books.objections.push(...books.strays.problems())
  const findings: Findings = {
    reach,
    misconfigured,
    isInHand,
    lastDue,
    overdue: [...overdue.values()].filter(
      (waiter) =>
        waiter.deadline + overdueAfterMs + times.of(waiter) < now &&
        !hasEnded(ledger.stateOf(waiter))
    ),
    unreadable: yield* Effect.filter([...unreadable.values()], stillUnreadable(ledger), {
      concurrency: maxConcurrentReads
    }),
    unburied: yield* stillMissing(letters.unburied, ledger),
    untold: stillWithoutFact(letters.untold, ledger)
  }
  const after = (yield* readChanges).changes
  if (after.epoch === epoch && after.change === undefined) return findings
  return yield* new TopologyError({
    message: "the number of partitions was changed while this was looking: run the audit again"
  })
})

/** A newer version may have delivered it meanwhile: asked where its round has ended. */
const stillUnreadable = (ledger: Books["ledger"]) => (message: Unreadable) =>
  message.about !== undefined && hasEnded(ledger.stateOf(message.about))
    ? isStillThere(message)
    : Effect.succeed(true)

export type Audit = Effect.Success<ReturnType<typeof audit>>
