import type { Msg } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"
import type { Seen } from "../../broker/broker.ts"
import { Broker } from "../../broker/broker.ts"
import { headersOf } from "../../broker/headers.ts"
import { remadeGap } from "../../broker/losses.ts"
import { millisOf } from "../../broker/stream-message.ts"
import { eventName } from "../../domain/event.ts"
import type { Names } from "../../domain/names.ts"
import type { Repeated } from "../../domain/origin.ts"
import { isBroughtAgain, originName, Repeats, readOrigin } from "../../domain/origin.ts"
import { present } from "../../domain/record.ts"
import { timeText } from "../../domain/timestamp.ts"
import type { Loose } from "../fact-record.ts"
import { aboutOf, numberIn, textIn } from "../fact-record.ts"
import { SequenceRuns } from "./incoming-check.ts"
import type { Ledger } from "./ledger.ts"
import type { AuditProblem } from "./problem.ts"
import type { AuditReach, Scope, StreamBeginning } from "./reach.ts"
import { goneTooEarly } from "./reach.ts"
import { SourceGaps } from "./source-gaps.ts"

/** The broker lost the end of a stream after it was read, as in a power cut. */
class EndLost extends Schema.TaggedError<EndLost>()("EndLost", {
  of: Schema.Literals(["events", "history"]),
  /** The last sequence that was read, and the first one that is known to be lost. */
  to: Schema.Int,
  from: Schema.Int
}) {
  override get message() {
    return `${this.says}: audit again`
  }
  get says() {
    const stream = this.of === "events" ? "event stream" : "history"
    const what = this.from === this.to ? `${this.to}` : `${this.from} to ${this.to}`
    return `the broker lost the end of the ${stream} after it was read: what was ${what} is not there, or is another`
  }
  get problem(): AuditProblem {
    return this.of === "events"
      ? { kind: "event-gap", eventSeq: this.from, says: this.says }
      : { kind: "history-gap", seq: this.from, to: this.to, says: this.says }
  }
}

/** The position up to which a stream was read. */
interface ReadPosition {
  readonly next: number
  readonly last: Pick<Seen, "nanoseconds" | "seq"> | undefined
}

/** Pause before a loss is believed, ms: a newly elected leader may need a moment to catch up. */
const retryPauseMs = 1_000

/**
 * Fails if a stream does not continue where it was left. A broker that lost the end of a stream
 * reuses the sequences, so a reader that continues would skip the new messages.
 */
export const goesOn = Effect.fnUntraced(function* (of: "events" | "history", left: ReadPosition) {
  const { names, readMessage, streamInfo } = yield* Broker
  const { last, next } = left
  if (last === undefined) return
  const stream = names[of]
  const look = Effect.gen(function* () {
    const { state } = yield* streamInfo(`look at ${stream}`, stream)
    if (state.last_seq < next - 1) return state.last_seq + 1
    const message = yield* readMessage(`look where ${stream} was left`, stream, { seq: last.seq })
    const isOther = message !== null && message.time.getTime() !== millisOf(last.nanoseconds)
    return isOther ? last.seq : undefined
  })
  if ((yield* look) === undefined) return
  const from = yield* Effect.delay(look, retryPauseMs)
  if (from !== undefined) return yield* new EndLost({ of, from, to: next - 1 })
})

/** Consecutive events that facts are about, and when the first and the last were stored. */
interface Run {
  from: number
  to: number
  /** ms since the epoch */
  fromAt: number
  toAt: number
}

/**
 * Which of the events that have left the event stream were routed: facts are about them. An event
 * that left it before a router took it has none, and no worker knows that there was one.
 */
export class RoutedEvents {
  /** Ordered by sequence. Facts come nearly in the order of their events, so these are few. */
  readonly #runs: Array<Run> = []
  readonly #end: number

  /** @param end the first sequence that is still stored. */
  constructor(end: number) {
    this.#end = end
  }

  /**
   * Records that a fact is about an event.
   *
   * @param at when the event was stored, ms since the epoch.
   */
  add(seq: number, at: number): void {
    if (seq < 1 || seq >= this.#end) return
    const after = this.#firstAfter(seq)
    const before = this.#runs[after - 1]
    if (before !== undefined && seq <= before.to) return
    const next = this.#runs[after]
    if (before?.to === seq - 1) {
      before.to = seq
      before.toAt = at
      if (next?.from !== seq + 1) return
      before.to = next.to
      before.toAt = next.toAt
      this.#runs.splice(after, 1)
    } else if (next?.from === seq + 1) {
      next.from = seq
      next.fromAt = at
    } else this.#runs.splice(after, 0, { from: seq, to: seq, fromAt: at, toAt: at })
  }

  /**
   * Returns the events of a range that left the stream without a plan: between two that were
   * routed, the first of them stored since the history has the plans of all events.
   */
  lost({
    plansSince,
    scope
  }: Pick<AuditReach, "plansSince" | "scope">): ReadonlyArray<AuditProblem> {
    const found: Array<AuditProblem> = []
    let last: Run | undefined
    for (const run of [...this.#runs, undefined]) {
      const gap = { from: (last?.to ?? 0) + 1, to: (run?.from ?? this.#end) - 1 }
      const isKnown = last === undefined ? scope.isWhole : last.toAt >= plansSince
      const isWithin =
        (last?.toAt ?? 0) <= scope.until && (run?.fromAt ?? Number.POSITIVE_INFINITY) >= scope.since
      const isGap = gap.from <= gap.to && gap.to - gap.from < remadeGap
      if (isKnown && isWithin && isGap)
        found.push(lostProblem({ ...gap, after: last?.toAt, before: run?.fromAt }))
      last = run
    }
    return found
  }

  /** Index of the first run that begins after a sequence. */
  #firstAfter(seq: number): number {
    let low = 0
    let high = this.#runs.length
    // Most facts are about the newest event.
    if ((this.#runs.at(-1)?.from ?? 0) <= seq) return high
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#runs[middle]?.from ?? 0) <= seq) low = middle + 1
      else high = middle
    }
    return low
  }
}

interface Gap {
  readonly from: number
  readonly to: number
  /** When the events around it were stored, ms since the epoch. */
  readonly after: number | undefined
  readonly before: number | undefined
}

const lostProblem = ({ after, before, from, to }: Gap): AuditProblem => {
  const bounds = [
    ...(after === undefined ? [] : [`after ${timeText(after)}`]),
    ...(before === undefined ? [] : [`before ${timeText(before)}`])
  ]
  const stored = ["stored", bounds.join(" and ")].join(" ").trimEnd()
  return {
    kind: "event-lost",
    eventSeq: from,
    toEventSeq: to,
    says:
      from === to
        ? `event ${from} was ${stored}, and left the event stream before it was routed: publish it again`
        : `events ${from} to ${to} were ${stored}, and left the event stream before they were routed: publish them again`
  }
}

/** Characters that end a tenant's name at the start of an id; no name contains them. */
const separators = ":./"

/** True for an id that begins with the tenant's name and one of `.`, `/` and `:`. */
export const beginsWithTenant = (id: string, tenant: string): boolean =>
  id.startsWith(tenant) && id.length > tenant.length && separators.includes(id[tenant.length] ?? "")

/** Counts what the headers of events show about sources and ids. */
export class EventHeaders {
  readonly #names: Names
  readonly #origins = new Repeats()
  /** Sequences of INTAKE that events name as their origins. */
  readonly incoming = new SequenceRuns()
  readonly sourceGaps: SourceGaps
  /** Sequences of events that a source stored again. */
  readonly repeated = new Set<number>()
  /**
   * For each tenant of the shared stream: how many of its events have an id that does not begin with
   * its name. Another tenant may use the same id.
   */
  readonly foreignIds = new Map<string, number>()

  constructor(names: Names) {
    this.#names = names
    this.sourceGaps = new SourceGaps(names)
  }

  /** @param at when it was stored, ms since the epoch. */
  see(seq: number, message: Msg, at: number): void {
    const header = headersOf(message)
    const { eventRoot, ownEvents } = this.#names
    const tenant = message.subject.split(".", 2)[1] ?? ""
    if (!message.subject.startsWith(`${eventRoot}.`)) return
    const origin = readOrigin(header("nats-stream-source"))
    if (origin !== undefined && this.#origins.isRepeat(tenant, origin)) this.repeated.add(seq)
    if (origin !== undefined) this.sourceGaps.see(origin, at)
    if (origin?.stream === this.#names.intake) this.incoming.add(origin.seq)
    if (origin !== undefined && origin.stream !== ownEvents) return
    const id = header("nats-msg-id")
    const isForeign = id !== undefined && !beginsWithTenant(id, tenant)
    this.foreignIds.set(tenant, (this.foreignIds.get(tenant) ?? 0) + Number(isForeign))
  }
}

/** Events that are not in the event stream any more. */
const eventsGone = (from: number, to: number, why: string): AuditProblem => ({
  kind: "event-gap",
  eventSeq: from,
  says: `${from === to ? `event ${from} is` : `events ${from} to ${to} are`} no longer in the event stream: ${why}`
})

/** Reports that events are not there, and others around them are. */
export const eventsRemoved = (from: number, to: number): AuditProblem =>
  eventsGone(from, to, from === to ? "it was removed" : "they were removed")

/** A fact about an event beyond the end of the event stream that no plan names. */
interface Beyond {
  readonly seq: number
  readonly eventSeq: number
  readonly record: Loose
}

/**
 * Facts about events that are not in the event stream: beyond its end, or before its beginning
 * although neither age nor size has dropped them.
 */
export class FactsWithoutEvent {
  /** Where the event stream begins. */
  begins: StreamBeginning
  /** The last event, read after the facts under check were stored. */
  #end = 0
  /** The last event beyond the end that a plan names. */
  #lastPlanned = 0
  /** The last event that was reported as lost. */
  #lostTo = 0
  #beyond: Array<Beyond> = []
  /** The first event that is gone too early, and the last one that was reported as gone. */
  #goneFrom: number | undefined
  #reportedTo = 0

  constructor(begins: StreamBeginning) {
    this.begins = begins
  }

  /** Sets the end of the event stream: all events up to it were stored. */
  endAt(lastEvent: number): void {
    this.#end = lastEvent
    if (this.#lastPlanned <= lastEvent) this.#lastPlanned = 0
    this.#beyond = this.#beyond.filter(({ eventSeq }) => eventSeq > lastEvent)
  }

  /** True if the event stream must be read again: an event may have been stored since. */
  get isWaiting(): boolean {
    return this.#lastPlanned > 0 || this.#beyond.length > 0
  }

  /** Checks the fact at a sequence of the history; it may be about no event. */
  see(record: Loose, seq: number, scope: Scope): void {
    const eventSeq = numberIn(record.eventSeq) ?? 0
    const { dueSince, first } = this.begins
    if (eventSeq > this.#end) this.#seeBeyond({ record, seq, eventSeq }, scope)
    else if (eventSeq < first && (numberIn(record.eventAt) ?? 0) >= dueSince)
      this.#seeGone(record, scope)
  }

  #seeBeyond(beyond: Beyond, { tenant }: Scope): void {
    const { eventSeq, record } = beyond
    if (record.plan !== undefined) this.#lastPlanned = Math.max(this.#lastPlanned, eventSeq)
    // The plan of the lost event reports it already.
    else if (
      eventSeq > Math.max(this.#lastPlanned, this.#lostTo) &&
      (tenant ?? record.tenant) === record.tenant
    )
      this.#beyond.push(beyond)
  }

  #seeGone(record: Loose, { since, tenant, until }: Scope): void {
    const about = aboutOf(record)
    if (about === undefined || (tenant ?? about.tenant) !== about.tenant) return
    const { eventAt, eventSeq } = about
    if (eventSeq <= this.#reportedTo || eventAt < since || eventAt > until) return
    this.#goneFrom = Math.min(this.#goneFrom ?? eventSeq, eventSeq)
  }

  /** Returns the problems of the facts since the last call. */
  problems(): ReadonlyArray<AuditProblem> {
    const found: Array<AuditProblem> = []
    if (this.#goneFrom !== undefined) found.push(this.reportRemoved(this.#goneFrom))
    if (this.#lastPlanned > 0)
      found.push(
        eventsGone(this.#end + 1, this.#lastPlanned, "the broker lost the end of the stream")
      )
    for (const { eventSeq, record, seq } of this.#beyond)
      if (eventSeq > this.#lastPlanned)
        found.push(outcomeOfNothing(record, eventSeq, seq, this.#end))
    this.#goneFrom = undefined
    this.#lostTo = Math.max(this.#lostTo, this.#lastPlanned)
    this.#lastPlanned = 0
    this.#beyond = []
    return found
  }

  /** Reports that events from this one on are gone too early; later facts about them are ignored. */
  reportRemoved(from: number): AuditProblem {
    this.#reportedTo = this.begins.first - 1
    return eventsGone(from, this.#reportedTo, goneTooEarly)
  }
}

const outcomeOfNothing = (
  record: Loose,
  eventSeq: number,
  seq: number,
  end: number
): AuditProblem => {
  const [tenant, endpoint, event] = [record.tenant, record.endpoint, record.event].map(textIn)
  return {
    kind: "outcome-without-event",
    ...present({ tenant, endpoint, event }),
    ...{ eventSeq, seq },
    says: `fact ${seq} tells of event ${eventSeq}, and the event stream ends with event ${end}: no such event was stored, or the broker lost it`
  }
}

/** Pairs of events that are compared concurrently. */
const maxConcurrentReads = 16

/**
 * Finds events that the router left out as repeats although their origins, as the broker recorded
 * them, differ: no endpoint received them. The audit does not rely on the router's decision.
 */
export const wronglyLeftOut = Effect.fnUntraced(function* ({
  leftOut,
  ledger
}: {
  readonly leftOut: ReadonlyMap<number, Repeated>
  readonly ledger: Ledger
}) {
  const { names, readMessage } = yield* Broker
  const read = (seq: number) => readMessage("look at an event", names.events, { seq })
  const isRepeat = Effect.fnUntraced(function* (eventSeq: number, first: Repeated) {
    if (first === "restart") {
      const message = yield* read(eventSeq)
      const origin = readOrigin(message?.header.get("Nats-Stream-Source"))
      return message === null || (origin !== undefined && isBroughtAgain(origin))
    }
    const [one, other] = yield* Effect.all([read(first.eventSeq), read(eventSeq)])
    // An event that has expired cannot be compared.
    if (other === null || first.eventSeq < ledger.scope.firstKept) return true
    const [origin, again] = [one, other].map((message) =>
      readOrigin(message?.header.get("Nats-Stream-Source"))
    )
    return (
      one?.time.getTime() === first.eventAt &&
      first.eventSeq < eventSeq &&
      one.subject === other.subject &&
      origin !== undefined &&
      again !== undefined &&
      originName("", origin) === originName("", again)
    )
  })
  const wrong = yield* Effect.filter(
    [...leftOut],
    ([eventSeq, first]) => Effect.map(isRepeat(eventSeq, first), (is) => !is),
    { concurrency: maxConcurrentReads }
  )
  return wrong.map(
    ([eventSeq, first]): AuditProblem => ({
      kind: "unrouted",
      eventSeq,
      says:
        first === "restart"
          ? "the router left it out as brought again by a restarted source, and it was not"
          : `the router left it out as a repeat of event ${eventName(first)}, and it is none`
    })
  )
})
