import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { BrokerError } from "../../broker/broker-error.ts"
import { brokerNow } from "../../broker/clock-watch.ts"
import { readRestored } from "../../broker/installation.ts"
import { readLayout, readLayoutRecord, TopologyError } from "../../broker/installed.ts"
import { seeStream } from "../../broker/scan.ts"
import { compareSources } from "../../broker/sources/comparison.ts"
import { divergenceText } from "../../broker/sources/divergence.ts"
import { copyingStreams } from "../../broker/sources/record.ts"
import { silentSources } from "../../broker/survey-streams.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import { timeText } from "../../domain/timestamp.ts"
import { nobody } from "../../domain/token.ts"
import { spanText } from "../../text/quantities.ts"
import type { RoundAt } from "../fact-record.ts"
import { roundName } from "../fact-record.ts"
import { attemptsOf, hasEnded } from "../fold/round.ts"
import { findBegun, readUnderWay, type StoredUnderWay } from "../rounds-under-way.ts"
import { compareCircuits, makeAttemptTimes, makeRoutingDue } from "./attempt-times.ts"
import { type AuditReading, openReading } from "./audit-reading.ts"
import { boundedCautions, boundedRemarks, type Caution } from "./bounded-notes.ts"
import { compareConfiguration } from "./configuration-reading.ts"
import { compareDeadLetters, stillMissing, stillWithoutFact } from "./dead-letter-check.ts"
import { compareIncoming } from "./incoming-check.ts"
import { type Findings, judge, type Overdue } from "./judgement.ts"
import type { EventHeaders } from "./lost-events.ts"
import {
  hasLeftEntry,
  isStillDecided,
  isStillThere,
  type PendingMessage,
  scanAll,
  scanFor,
  type UnreadableMessage
} from "./pending-scan.ts"
import type { AuditProblem } from "./problem.ts"
import {
  type AuditRange,
  type AuditReach,
  goneTooEarly,
  readReach,
  type Scope,
  withoutExpired
} from "./reach.ts"
import { findNotCopied } from "./source-gaps.ts"

/** Tenants of a shared stream whose ids may collide with ids of other tenants. */
const foreignIds = ({ foreignIds }: EventHeaders): ReadonlyArray<Caution> =>
  foreignIds.size < 2
    ? []
    : [...foreignIds]
        .filter(([, events]) => events > 0)
        .map(([tenant, events]) => ({
          kind: "ids-without-tenant",
          tenant,
          events,
          says: `their ids do not begin with "${tenant}." (or "${tenant}/", "${tenant}:"), and other tenants publish to the same stream: one that uses the same id makes the second event a duplicate, which is not stored`
        }))

/** Events in source streams that EVENTS has not copied yet: the audit does not see them. */
const behind = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const info = yield* streamInfo("look at the sources of the events", names.events)
  const silent = new Map(silentSources(info).map(({ name, silentMs }) => [name, { silentMs }]))
  return (info.sources ?? []).flatMap(({ lag, name }): ReadonlyArray<Caution> => {
    const silence = silent.get(name)
    if (lag <= 0 && silence === undefined) return []
    const says =
      silence === undefined
        ? `they are in ${name} and have not come to ${names.events} yet: nothing here is about them`
        : `nothing has come from ${name} to ${names.events} ${silence.silentMs === undefined ? "yet" : `for ${spanText(silence.silentMs)}`}, and how many are there is not known: nothing here is about them`
    return [{ kind: "source-behind", tenant: names.tenantOf(name) ?? "_", events: lag, says }]
  })
})

/**
 * The installation was made of a backup, which lacks what was done after it: only before and since
 * is everything there. The events of this caution came after the backup's last fact.
 */
const restored = Effect.fnUntraced(function* ({ since, tenant, until }: Scope) {
  const found = yield* readRestored
  if (found === undefined || since > found.at || until < found.factsUntil) return []
  const { at, eventsUntil, factsUntil, lastEvent } = found
  const { events, subjects } = (yield* Broker).names
  let after = 0
  const range = {
    stream: events,
    subjects: tenant === undefined ? [">"] : [subjects.eventsOf(tenant)],
    fromTime: factsUntil + 1,
    headersOnly: true
  }
  yield* seeStream(range, ({ seq }) => {
    if (seq <= lastEvent) after++
    return seq >= lastEvent
  })
  const caution: Caution = {
    kind: "restored",
    tenant: tenant ?? nobody,
    events: after,
    says: `this was restored from a backup: all is known up to ${timeText(factsUntil)} and since ${timeText(at)}. What was sent in between, by the installation that was backed up, is not known here and may have been sent again; what was published after ${timeText(eventsUntil)} is not here`
  }
  return [caution]
})

/** Reads the cautions, each as a count of events. */
const readCautions = Effect.fnUntraced(function* (headers: EventHeaders, { scope }: AuditReach) {
  return boundedCautions([...foreignIds(headers), ...(yield* behind), ...(yield* restored(scope))])
})

/**
 * Finds sources that lost what was copied from them: what has taken the sequences since was stored
 * and acknowledged, and is in no stream that the audit reads. Compares each copy with its original,
 * those of the range and all changes of endpoints.
 *
 * @param compared by stream, the next sequence to compare. Moves on where nothing is wrong.
 */
const divergedSources = Effect.fnUntraced(function* (
  compared: Map<string, number>,
  { firstEvent, lastEvent, tenant }: Scope
) {
  const { names } = yield* Broker
  const problems: Array<AuditProblem> = []
  for (const stream of yield* copyingStreams) {
    const isEvents = stream === names.events
    const found = yield* compareSources(stream, {
      from: compared.get(stream) ?? (isEvents ? firstEvent : 1),
      ...(isEvents ? { to: lastEvent } : {}),
      isWanted: (source) => (names.tenantOf(source) ?? tenant) === tenant || tenant === undefined
    })
    for (const [source, { cause }] of found.unread) {
      const owner = names.tenantOf(source)
      const remedy =
        owner === undefined
          ? ""
          : ` (the account of ${owner} must answer, as nats.conf shows; \`petrel audit --tenant\` works for other tenants without it)`
      return yield* new BrokerError({ operation: `look at the source ${source}${remedy}`, cause })
    }
    if (found.divergences.length === 0) compared.set(stream, found.next)
    for (const divergence of found.divergences) {
      const { from, source, start } = divergence
      const owner = names.tenantOf(source)
      problems.push({
        kind: "source-diverged",
        ...(owner === undefined ? {} : { tenant: owner }),
        ...{ stream: source, streamSeq: from },
        says: `${divergenceText(divergence)}: run \`petrel init\`, which starts the source again at ${start}`
      })
    }
  }
  return problems
})

const momentOf = (at: number): string => new Date(at).toISOString()

/**
 * Narrows the reach if the beginning of the history was removed although neither age nor size has
 * dropped it. The sign of that: events that the router acknowledged have no plan. A quiet month, in
 * which the oldest facts expire and none follow, leaves no such events.
 */
const withoutRemoved = (reach: AuditReach, reading: AuditReading): AuditReach => {
  if (reading.isBeginningKnown) return reach
  reading.isBeginningKnown = true
  const { history, ledger, objections } = reading
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
    says: `facts up to ${first - 1} are no longer in the history, though ${goneTooEarly}. Events ${from.seq} to ${to.seq}, stored ${momentOf(from.at)} to ${momentOf(to.at)}, were routed, and ${gone.length} of them have no plan in it`
  })
  const firstEvent = to.seq + 1
  ledger.beginAt(firstEvent)
  return {
    ...reach,
    since: to.at + 1,
    scope: { ...reach.scope, firstEvent, isWhole: false }
  }
}

export interface AuditOptions extends AuditRange {
  /** Sequences of EVENTS and HISTORY up to which another audit has a fingerprint. */
  readonly marks?: { readonly events: number; readonly history: number } | undefined
  /** Called once, with the reading: it shows how far it has come. */
  readonly onBegin?: ((reading: AuditReading) => void) | undefined
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
  const reading = yield* openReading(whole, options.marks)
  options.onBegin?.(reading)
  const findings = yield* examine(reading, whole)
  const { reach } = findings
  const { ackWait } = yield* readLayout
  const remarks = boundedRemarks(yield* compareCircuits(reading, ackWait))
  const cautions = yield* readCautions(reading.headers, reach)
  return { reach, reading, findings, remarks, cautions, judgement: yield* judge(reading, findings) }
})

/**
 * Reads what was stored since the last call, and searches the deliveries that have not ended. Fails
 * if the number of partitions changed during the search: deliveries are then in other streams.
 */
export const examine = Effect.fnUntraced(function* (reading: AuditReading, whole: AuditReach) {
  const { ackWait, partitions } = yield* readLayout
  const { epoch } = (yield* readLayoutRecord).record
  const { ledger } = reading
  reading.beginAt(whole)
  yield* reading.readEvents(whole.scope.lastEvent)
  yield* reading.readConfiguration
  yield* reading.readHistory
  const left = yield* withoutExpired(whole, reading.history.first)
  if (left !== whole) ledger.beginAt(left.scope.firstEvent)
  const reach = withoutRemoved(left, reading)

  const overdue = new Map<string, Overdue>()
  const now = yield* brokerNow
  const times = yield* makeAttemptTimes
  const routed = yield* makeRoutingDue({ now, graceMs: overdueAfterMs, reach, times })
  /** Rounds that were not found, without those that an attempt under way may still complete. */
  const findLost = Effect.gen(function* () {
    yield* routed.learn(ledger.open(routed.mayBeUnderWay).lost)
    return ledger.open(routed.mayBeUnderWay).lost
  })
  const departed = new Map<string, PendingMessage>()
  const see = (waiter: PendingMessage) => {
    const { deadline } = waiter
    if (hasLeftEntry(waiter, attemptsOf(ledger.stateOf(waiter)))) {
      departed.set(roundName(waiter), waiter)
      return
    }
    if (!ledger.found(waiter) || deadline === undefined || deadline + overdueAfterMs >= now) return
    overdue.set(roundName(waiter), { ...waiter, deadline })
  }
  const findDecided = Effect.fnUntraced(function* (round: RoundAt) {
    const waiter = departed.get(roundName(round))
    if (waiter !== undefined && (yield* isStillDecided(waiter))) ledger.found(waiter)
  })
  const unreadable = new Map<string, UnreadableMessage>()
  const seeUnreadable = (message: UnreadableMessage) => {
    const { tenant = message.tenant } = reach.scope
    if (message.tenant === tenant) unreadable.set(`${message.stream}:${message.seq}`, message)
  }
  ledger.beginLooking()
  yield* scanAll(partitions, see, seeUnreadable)
  const letters = yield* compareDeadLetters(ledger)
  yield* reading.readHistory

  let begun: ReadonlyArray<StoredUnderWay> = []
  for (let look = 1; look <= maxSecondLooks; look++) {
    const lost = yield* findLost
    const withoutFact = stillWithoutFact(letters.withoutFact, ledger)
    const open = lost.length + withoutFact.length + letters.missing.length + overdue.size
    if (open === 0 && !reading.withoutEvent.isWaiting) break
    yield* Effect.sleep(ackWait)
    // Before the search: a round may get its message after it, and its record is erased then.
    begun = yield* readUnderWay
    yield* scanFor(lost, partitions, see)
    yield* reading.readHistory
  }
  yield* Effect.forEach(yield* findLost, findDecided, { concurrency: maxConcurrentReads })
  yield* findBegun(yield* findLost, begun, (round) => ledger.found(round))
  yield* times.learn(overdue.values())
  const misconfigured = yield* findMisconfigured(reading, reach.scope, ackWait)
  reading.objections.push(...reading.withoutEvent.problems())
  const findings: Findings = {
    reach,
    misconfigured,
    diverged: yield* divergedSources(reading.copiesCompared, reach.scope),
    notCopied: yield* findNotCopied(reading.headers.sourceGaps),
    incoming: yield* compareIncoming(
      { copied: reading.headers.incoming, leftQuarantine: reading.leftQuarantine },
      reach
    ),
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

/** Compares endpoints with the history, and what differs once more after a pause, ms. */
const findMisconfigured = Effect.fnUntraced(function* (
  reading: AuditReading,
  { tenant }: Scope,
  pauseMs: number
) {
  const found = yield* compareConfiguration(reading.planCheck, tenant)
  if (found.length === 0) return found
  yield* Effect.sleep(pauseMs)
  yield* reading.readHistory
  return yield* compareConfiguration(reading.planCheck, tenant)
})

/** If its round has ended, a newer version may have delivered it: asks whether it is still there. */
const stillUnreadable = (ledger: AuditReading["ledger"]) => (message: UnreadableMessage) =>
  message.about !== undefined && hasEnded(ledger.stateOf(message.about))
    ? isStillThere(message)
    : Effect.succeed(true)

export type Audit = Effect.Success<ReturnType<typeof audit>>
