import { Clock, Effect } from "effect"
import { readLayout, readLayoutRecord, TopologyError } from "../../broker/installed.ts"
import { roundName } from "../fact-record.ts"
import { hasEnded } from "../fold/round.ts"
import { makeAttemptTimes } from "./attempt-times.ts"
import type { Books } from "./books.ts"
import { openBooks } from "./books.ts"
import { readCautions } from "./cautions.ts"
import { compareCircuits } from "./circuits.ts"
import { compareConfiguration } from "./configuration-reading.ts"
import { compareDeadLetters, stillMissing, stillWithoutFact } from "./dead-letter-check.ts"
import type { Findings, Overdue } from "./findings.ts"
import { judge } from "./judgement.ts"
import type { PendingMessage, UnreadableMessage } from "./pending-scan.ts"
import { isStillThere, scanAll, scanFor } from "./pending-scan.ts"
import type { AuditRange, AuditReach } from "./reach.ts"
import { readReach, withoutExpired } from "./reach.ts"
import { withoutRemoved } from "./removed-beginning.ts"
import { makeRoutingDue } from "./routing-due.ts"
import { divergedSources } from "./source-check.ts"

export interface AuditOptions extends AuditRange {
  /** Sequences of EVENTS and HISTORY up to which another audit has a fingerprint. */
  readonly marks?: { readonly events: number; readonly history: number } | undefined
  /** Called once, with the books: they show how far the reading has come. */
  readonly onBegin?: ((books: Books) => void) | undefined
}

/**
 * A delivery that waits for longer than this after its deadline, or an event that waits for the
 * router for longer, is a problem, ms. A delivery that may be in an attempt has the attempt's
 * timeout in addition.
 */
const overdueAfterMs = 15 * 60_000
/** Searches for a delivery that was not found, an ack_wait apart, before it counts as missing. */
const maxSecondLooks = 2
/** Concurrent reads of unreadable messages. */
const maxConcurrentReads = 16

/**
 * Finds out from the streams alone what became of each delivery in a range. The cluster works while
 * the audit runs, so the order matters: first the events, then the facts, then the messages that
 * wait. A delivery that has neither ended nor was found waiting is searched again after an ack_wait,
 * with the facts stored since and at the streams' leaders, before it counts as missing.
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
 * Reads what was stored since the last call, and searches the deliveries that have not ended. Fails
 * if the number of partitions changed during the search: deliveries are then in other streams.
 */
export const examine = Effect.fnUntraced(function* (books: Books, whole: AuditReach) {
  const { ackWait, partitions } = yield* readLayout
  const { epoch } = (yield* readLayoutRecord).record
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
  const times = yield* makeAttemptTimes
  const routed = yield* makeRoutingDue({ now, graceMs: overdueAfterMs, reach, times })
  /** Rounds that were not found, without those that an attempt under way may still complete. */
  const findLost = Effect.gen(function* () {
    yield* routed.learn(ledger.open(routed.mayBeUnderWay).lost)
    return ledger.open(routed.mayBeUnderWay).lost
  })
  const see = (waiter: PendingMessage) => {
    const { deadline } = waiter
    if (!ledger.found(waiter) || deadline === undefined || deadline + overdueAfterMs >= now) return
    overdue.set(roundName(waiter), { ...waiter, deadline })
  }
  const unreadable = new Map<string, UnreadableMessage>()
  const seeUnreadable = (message: UnreadableMessage) => {
    const { tenant = message.tenant } = reach.scope
    if (message.tenant === tenant) unreadable.set(`${message.stream}:${message.seq}`, message)
  }
  ledger.beginLooking()
  yield* scanAll(partitions, see, seeUnreadable)
  const letters = yield* compareDeadLetters(ledger)
  yield* books.readHistory

  for (let look = 1; look <= maxSecondLooks; look++) {
    const lost = yield* findLost
    const withoutFact = stillWithoutFact(letters.withoutFact, ledger)
    const open = lost.length + withoutFact.length + letters.missing.length + overdue.size
    if (open === 0 && !books.strays.isWaiting) break
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
    diverged: yield* divergedSources(books.copiesCompared, reach.scope),
    mayBeUnderWay: routed.mayBeUnderWay,
    lastDue: routed.lastDue,
    overdue: [...overdue.values()].filter(
      (waiter) =>
        waiter.deadline + overdueAfterMs + times.of(waiter) < now &&
        !hasEnded(ledger.stateOf(waiter))
    ),
    unreadable: yield* Effect.filter([...unreadable.values()], stillUnreadable(ledger), {
      concurrency: maxConcurrentReads
    }),
    missingDeadLetters: yield* stillMissing(letters.missing, ledger),
    deadLettersWithoutFact: stillWithoutFact(letters.withoutFact, ledger)
  }
  const after = (yield* readLayoutRecord).record
  if (after.epoch === epoch && after.change === undefined) return findings
  return yield* new TopologyError({
    message: "the number of partitions was changed while this was looking: run the audit again"
  })
})

/** If its round has ended, a newer version may have delivered it: asks whether it is still there. */
const stillUnreadable = (ledger: Books["ledger"]) => (message: UnreadableMessage) =>
  message.about !== undefined && hasEnded(ledger.stateOf(message.about))
    ? isStillThere(message)
    : Effect.succeed(true)

export type Audit = Effect.Success<ReturnType<typeof audit>>
