import { Effect } from "effect"
import type { Seen } from "../../broker/broker.ts"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { millisOf } from "../../broker/stream-message.ts"
import type { Names } from "../../domain/names.ts"
import type { Repeated } from "../../domain/origin.ts"
import { readRepeat } from "../../domain/origin.ts"
import { present } from "../../domain/record.ts"
import type { Loose } from "../fact-record.ts"
import { aboutOf, numberIn, readRecord, strictly, textIn } from "../fact-record.ts"
import type { EndpointLife } from "../fold/endpoint.ts"
import { afterEndpointFact, newEndpoint } from "../fold/endpoint.ts"
import { stepOfKind } from "../fold/round.ts"
import { readConfiguration } from "./configuration-reading.ts"
import { Ledger } from "./ledger.ts"
import {
  EventHeaders,
  eventsRemoved,
  FactsWithoutEvent,
  goesOn,
  RoutedEvents
} from "./lost-events.ts"
import { PlanCheck } from "./plan-check.ts"
import type { AuditProblem } from "./problem.ts"
import type { AuditReach } from "./reach.ts"
import { factsGone, takeRemoved } from "./reach.ts"
import { StreamReading } from "./stream-reading.ts"

const circuitKinds: ReadonlySet<unknown> = new Set([
  "circuit-opened",
  "circuit-half-opened",
  "circuit-closed",
  "endpoint-disabled",
  "endpoint-enabled",
  "endpoint-suspended",
  "endpoint-resumed"
])

/** Facts about no event. They are few, so each is checked in full. */
const isAside = ({ kind }: Loose): boolean =>
  !stepOfKind.has(kind) && kind !== "unroutable" && kind !== "missing"

/**
 * Opens the reading of a range.
 *
 * @param marks sequences of EVENTS and HISTORY up to which additional fingerprints are made.
 */
export const openReading = Effect.fnUntraced(function* (
  reach: AuditReach,
  marks: { events?: number; history?: number } = {}
) {
  const { names } = yield* Broker
  return new AuditReading(reach, names, marks)
})

/**
 * The events and the facts of a range. Each is read once, in order, up to the end that its stream
 * has at the moment; each further call reads what was stored since.
 */
export class AuditReading {
  readonly ledger: Ledger
  readonly headers: EventHeaders
  /** The events that the router left out, and which event each of them repeats. */
  readonly leftOut = new Map<number, Repeated>()
  readonly events: StreamReading
  readonly history: StreamReading
  /** Circuits according to the facts, by `<tenant>.<endpoint>`. */
  readonly endpoints = new Map<string, EndpointLife>()
  readonly objections: Array<AuditProblem> = []
  readonly withoutEvent: FactsWithoutEvent
  readonly planCheck: PlanCheck
  /** The events before the first one that is stored. */
  readonly routed: RoutedEvents
  /** Sequences of INTAKE that have left the quarantine. */
  readonly leftQuarantine = new Set<number>()
  /** By stream that copies from sources: the next sequence whose copy is to be compared. */
  readonly copiesCompared = new Map<string, number>()
  /** True once it was checked that the history has all that it should at its beginning. */
  isBeginningKnown = false
  readonly #names: Names
  /** Sequences of events that another event has now, each reported once. */
  readonly #replaced = new Set<number>()
  #isConfigured = false
  /** True once a fact was read: the facts that follow have no gaps. */
  #isGapless = false

  constructor(reach: AuditReach, names: Names, marks: { events?: number; history?: number }) {
    this.#names = names
    this.ledger = new Ledger(reach.scope)
    this.headers = new EventHeaders(names)
    this.events = new StreamReading(reach.scope.firstEvent, marks.events)
    this.history = new StreamReading(reach.firstFact, marks.history)
    this.withoutEvent = new FactsWithoutEvent(reach.begins.events)
    this.planCheck = new PlanCheck(reach.clocksApart)
    this.routed = new RoutedEvents(reach.begins.events.first)
  }

  /**
   * Sets where the streams begin now. Reports what was read before and is gone although neither age
   * nor size has dropped it.
   */
  beginAt({ begins }: AuditReach): void {
    this.withoutEvent.begins = begins.events
    const firstFact = takeRemoved(this.history.marks, begins.history)
    if (firstFact !== undefined)
      this.objections.push(factsGone(firstFact, begins.history.first - 1))
    const firstEvent = takeRemoved(this.events.marks, begins.events)
    if (firstEvent !== undefined) this.objections.push(this.withoutEvent.reportRemoved(firstEvent))
  }

  /** Reads the changes of endpoints, once: the history has the later ones. */
  readonly readConfiguration = Effect.gen({ self: this }, function* () {
    if (this.#isConfigured) return
    const { tenant } = this.ledger.scope
    this.objections.push(...(yield* readConfiguration(this.planCheck, tenant)))
    this.#isConfigured = true
  })

  readonly readEvents = Effect.fnUntraced({ self: this }, function* (lastEvent: number) {
    const { events } = this
    const { events: stream, subjects } = this.#names
    const { tenant } = this.ledger.scope
    yield* goesOn("events", events)
    events.to = lastEvent
    yield* readThrough(
      {
        stream,
        subjects:
          tenant === undefined
            ? [">"]
            : [subjects.event(tenant, ">"), subjects.alertEvent(tenant, ">")],
        from: events.next,
        to: lastEvent,
        headersOnly: true
      },
      (seen) => this.#seeEvent(seen)
    )
    if (tenant === undefined && events.messages > 0 && events.next <= lastEvent)
      this.objections.push(eventsRemoved(events.next, lastEvent))
    events.readUpTo(lastEvent)
  })

  readonly readHistory = Effect.gen({ self: this }, function* () {
    const { names, streamInfo } = yield* Broker
    const { history } = this
    yield* goesOn("history", history)
    const { state } = yield* streamInfo("look at the history", names.history)
    history.to = state.last_seq
    // The events' end is read after the history's: an event is stored before the facts about it.
    const { state: ends } = yield* streamInfo("look at the events", names.events)
    this.withoutEvent.endAt(ends.last_seq)
    yield* readThrough(
      {
        stream: names.history,
        subjects: [names.subjects.allFacts],
        from: history.next,
        to: history.to
      },
      (seen) => this.#seeFact(seen)
    )
    // The last facts may have been removed.
    if (this.#isGapless && history.next <= history.to)
      this.objections.push(gapInHistory(history.next, history.to))
    history.readUpTo(history.to)
  })

  /** Drops what ended well long ago. */
  forgetSettled(): void {
    this.ledger.forgetSettled()
  }

  #seeEvent(seen: Seen): void {
    const { events, ledger } = this
    // The sequences of one tenant's events have gaps.
    if (ledger.scope.tenant === undefined && events.messages > 0 && seen.seq > events.next)
      this.objections.push(eventsRemoved(events.next, seen.seq - 1))
    events.read(seen)
    this.headers.see(seen.seq, seen.message, millisOf(seen.nanoseconds))
    if (!ledger.event(seen.seq, millisOf(seen.nanoseconds))) this.#onReplaced(seen.seq)
  }

  #seeFact(seen: Seen): void {
    const { message, nanoseconds, seq } = seen
    const { history, objections } = this
    if (this.#isGapless && seq !== history.next)
      objections.push(gapInHistory(history.next, seq - 1))
    this.#isGapless = true
    history.read(seen)
    const record = readRecord(message.string())
    const aside = record !== undefined && isAside(record) ? strictly(record) : undefined
    const objection =
      record === undefined || (isAside(record) && aside === undefined)
        ? "unreadable-fact"
        : this.ledger.fact(record, millisOf(nanoseconds))
    if (objection === "event-replaced")
      this.#onReplaced(numberIn(record?.eventSeq) ?? 0, record, seq)
    else if (objection !== undefined)
      objections.push({ kind: objection, seq, says: wordsFor(objection, seq) })
    if (record !== undefined && !isAside(record) && record.kind !== "missing")
      this.routed.add(numberIn(record.eventSeq) ?? 0, numberIn(record.eventAt) ?? 0)
    if (record !== undefined && objection === undefined) {
      this.withoutEvent.see(record, seq, this.ledger.scope)
      if (record.plan !== undefined) this.#seePlan(record, millisOf(nanoseconds))
    }
    if (aside?.kind === "endpoint-changed") this.#seeChange(aside, seq)
    if (aside?.kind === "quarantine-released" || aside?.kind === "quarantine-discarded")
      this.leftQuarantine.add(numberIn(Object(aside.incoming).seq) ?? 0)
    if (aside === undefined || !circuitKinds.has(aside.kind)) return
    const key = `${aside.tenant}.${aside.endpoint}`
    const before = this.endpoints.get(key) ?? newEndpoint
    this.endpoints.set(key, afterEndpointFact(before, aside))
  }

  #seeChange(record: Loose, seq: number): void {
    const taken = this.planCheck.change(record)
    if (typeof taken === "object")
      this.objections.push({ ...taken, seq, says: `fact ${seq} is false: ${taken.says}` })
  }

  #seePlan(record: Loose, storedAt: number): void {
    const first = readRepeat(record.reason)
    if (first === undefined) this.#checkPlan(record, storedAt)
    else this.leftOut.set(numberIn(record.eventSeq) ?? 0, first)
  }

  #checkPlan(record: Loose, storedAt: number): void {
    const about = aboutOf(record)
    const type = textIn(record.type)
    const { firstEvent, lastEvent, tenant } = this.ledger.scope
    if (about === undefined || type === undefined || (tenant ?? about.tenant) !== about.tenant)
      return
    const { eventSeq } = about
    if (eventSeq < firstEvent || eventSeq > lastEvent) return
    this.objections.push(...this.planCheck.plan(record, { ...about, type, storedAt }))
  }

  /** A broker that lost the end of the event stream gives its sequences to other events. */
  #onReplaced(eventSeq: number, record?: Loose, seq?: number): void {
    if (this.#replaced.has(eventSeq)) return
    this.#replaced.add(eventSeq)
    const event = textIn(record?.event)
    const subject = seq === undefined ? "facts tell of" : `fact ${seq} is about`
    this.objections.push({
      kind: "event-replaced",
      eventSeq,
      ...present({ event, seq }),
      says: `${subject} ${event === undefined ? "an event" : `event ${event}`} that had the sequence ${eventSeq}, and another one has it now: the broker lost the end of the event stream`
    })
  }
}

const gapInHistory = (seq: number, to: number): AuditProblem => ({
  kind: "history-gap",
  seq,
  to,
  says:
    seq === to
      ? `fact ${seq} is no longer in the history`
      : `facts ${seq} to ${to} are no longer in the history`
})

const wordsFor = (
  objection: "unreadable-fact" | "plans-differ" | "fact-before-event",
  seq: number
): string => {
  switch (objection) {
    case "unreadable-fact":
      return `record ${seq} of the history is not a fact that this version can read`
    case "plans-differ":
      return `fact ${seq} plans an event again that was planned differently before`
    case "fact-before-event":
      return `fact ${seq} was stored before the event that it is about`
  }
}
