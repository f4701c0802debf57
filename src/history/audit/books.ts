import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { millisOf } from "../../broker/stream-message.ts"
import type { EventIdentity } from "../../domain/event.ts"
import { readRepeat } from "../../domain/origin.ts"
import type { EndpointLife } from "../fold/endpoint.ts"
import { afterEndpointFact, newEndpoint } from "../fold/endpoint.ts"
import { stepOfKind } from "../fold/round.ts"
import { readConfiguration } from "./configuration-reading.ts"
import { Digests } from "./digest.ts"
import { EventHeaders } from "./event-headers.ts"
import { Ledger } from "./ledger.ts"
import { goesOn } from "./lost-end.ts"
import { PlanCheck } from "./plan-check.ts"
import type { Problem } from "./problem.ts"
import type { Reach } from "./reach.ts"
import type { Seen } from "./reading.ts"
import { readThrough } from "./reading.ts"
import type { Loose } from "./record.ts"
import { aboutOf, numberIn, readRecord, strictly, textIn } from "./record.ts"

/** How far the reading of a stream has come. */
export interface Reading {
  /** The next sequence to be read. */
  next: number
  /** The last that is to be read now. */
  to: number
  messages: number
  /** When the first that was read was stored, ms since the epoch. */
  first: { readonly seq: number; readonly at: number } | undefined
  /** The last that was read. */
  last: Pick<Seen, "nanoseconds" | "seq"> | undefined
  readonly digests: Digests
}

/** Takes down how far the reading has come. */
const note = (reading: Reading, seen: Seen) => {
  reading.next = seen.seq + 1
  reading.first ??= { seq: seen.seq, at: millisOf(seen.nanoseconds) }
  reading.last = { seq: seen.seq, nanoseconds: seen.nanoseconds }
  reading.messages++
  reading.digests.add(seen)
}

const circuitKinds: ReadonlySet<unknown> = new Set([
  "circuit-opened",
  "circuit-half-opened",
  "circuit-closed",
  "endpoint-disabled",
  "endpoint-enabled"
])

/** Facts about no event: few, of which each is checked in full. */
const isAside = ({ kind }: Loose): boolean =>
  !stepOfKind.has(kind) && kind !== "unroutable" && kind !== "missing"

/**
 * The events and the facts of a range, read once each in their order, as far as the streams go at
 * the moment; and on from there, as often as it is asked.
 */
export const openBooks = Effect.fnUntraced(function* (
  reach: Reach,
  marks: { events?: number; history?: number } = {}
) {
  const { names } = yield* Broker
  const ledger = new Ledger(reach.scope)
  const headers = new EventHeaders(names)
  /** The events that the router left out, and which event each of them repeats. */
  const leftOut = new Map<number, EventIdentity>()
  const reading = (next: number, mark?: number): Reading => ({
    next,
    to: next - 1,
    messages: 0,
    first: undefined,
    last: undefined,
    digests: new Digests(mark)
  })
  const events = reading(reach.scope.firstEvent, marks.events)
  const history = reading(reach.firstFact, marks.history)
  /** Circuits as the facts tell of them, by `<tenant>.<endpoint>`. */
  const endpoints = new Map<string, EndpointLife>()
  const objections: Array<Problem> = []
  const planCheck = new PlanCheck(reach.clocksApart)
  let isConfigured = false
  let isGapless = false
  const replaced = new Set<number>()
  let lastPlanned = 0

  const eventsGone = (from: number, to: number, why: string) =>
    objections.push({
      kind: "event-gap",
      eventSeq: from,
      says: `${from === to ? `event ${from} is` : `events ${from} to ${to} are`} not in the event stream any more: ${why}`
    })

  const seeEvent = (seen: Seen) => {
    // Of one tenant's events nobody knows which sequences they had.
    if (ledger.scope.tenant === undefined && events.messages > 0 && seen.seq > events.next)
      eventsGone(events.next, seen.seq - 1, "somebody removed them")
    note(events, seen)
    headers.see(seen.seq, seen.message)
    if (!ledger.event(seen.seq, millisOf(seen.nanoseconds))) isReplaced(seen.seq)
  }

  const seeFact = (seen: Seen) => {
    const { message, nanoseconds, seq } = seen
    if (isGapless && seq !== history.next)
      objections.push({
        kind: "history-gap",
        seq: history.next,
        to: seq - 1,
        says:
          seq - 1 === history.next
            ? `fact ${history.next} is not in the history any more`
            : `facts ${history.next} to ${seq - 1} are not in the history any more`
      })
    isGapless = true
    note(history, seen)
    const record = readRecord(message.string())
    const aside = record !== undefined && isAside(record) ? strictly(record) : undefined
    const objection =
      record === undefined || (isAside(record) && aside === undefined)
        ? "unreadable-fact"
        : ledger.fact(record, millisOf(nanoseconds))
    if (objection === "event-replaced") isReplaced(numberIn(record?.eventSeq) ?? 0, record, seq)
    else if (objection !== undefined)
      objections.push({ kind: objection, seq, says: wordsFor(objection, seq) })
    if (record?.plan !== undefined && objection === undefined) {
      const eventSeq = numberIn(record.eventSeq) ?? 0
      lastPlanned = Math.max(lastPlanned, eventSeq)
      const first = readRepeat(record.reason)
      if (first === undefined) recompute(record, millisOf(nanoseconds))
      else leftOut.set(eventSeq, first)
    }
    if (aside?.kind === "endpoint-changed") planCheck.change(aside)
    if (aside === undefined || !circuitKinds.has(aside.kind)) return
    const key = `${aside.tenant}.${aside.endpoint}`
    endpoints.set(key, afterEndpointFact(endpoints.get(key) ?? newEndpoint, aside))
  }

  const recompute = (record: Loose, storedAt: number) => {
    const about = aboutOf(record)
    const type = textIn(record.type)
    const { firstEvent, lastEvent, tenant } = ledger.scope
    if (about === undefined || type === undefined || (tenant ?? about.tenant) !== about.tenant)
      return
    const { eventSeq } = about
    if (eventSeq < firstEvent || eventSeq > lastEvent) return
    objections.push(...planCheck.plan(record, { ...about, type, storedAt }))
  }

  /** A broker that lost the end of the event stream gives its sequences to other events. */
  const isReplaced = (eventSeq: number, record?: Loose, seq?: number) => {
    if (replaced.has(eventSeq)) return
    replaced.add(eventSeq)
    const event = textIn(record?.event)
    const told = seq === undefined ? "facts tell of" : `fact ${seq} is about`
    objections.push({
      kind: "event-replaced",
      eventSeq,
      ...(event === undefined ? {} : { event }),
      ...(seq === undefined ? {} : { seq }),
      says: `${told} ${event === undefined ? "an event" : `event ${event}`} that had the sequence ${eventSeq}, and another one has it now: the broker lost the end of the event stream`
    })
  }

  const readHistory = Effect.gen(function* () {
    const { ask, jsm, names } = yield* Broker
    yield* goesOn("history", history)
    const { state } = yield* ask("look at the history", () => jsm.streams.info(names.history))
    history.to = state.last_seq
    yield* readThrough(
      {
        stream: names.history,
        subjects: [names.subjects.allFacts],
        from: history.next,
        to: history.to
      },
      seeFact
    )
    // What was last may have been removed.
    if (isGapless && history.next <= history.to)
      objections.push({
        kind: "history-gap",
        seq: history.next,
        to: history.to,
        says: `facts ${history.next} to ${history.to} are not in the history any more`
      })
    history.next = Math.max(history.next, history.to + 1)
    const { state: now } = yield* ask("look at the events", () => jsm.streams.info(names.events))
    if (lastPlanned <= now.last_seq) return
    eventsGone(now.last_seq + 1, lastPlanned, "the broker lost the end of the stream")
    lastPlanned = 0
  })

  /** Once: what is changed later is told in the history. */
  const readChanges = Effect.gen(function* () {
    if (isConfigured) return
    objections.push(...(yield* readConfiguration(planCheck, ledger.scope.tenant)))
    isConfigured = true
  })

  const readEvents = Effect.fnUntraced(function* (lastEvent: number) {
    const { names } = yield* Broker
    const { tenant } = ledger.scope
    yield* goesOn("events", events)
    events.to = lastEvent
    yield* readThrough(
      {
        stream: names.events,
        subjects:
          tenant === undefined
            ? [">"]
            : [names.subjects.event(tenant, ">"), names.subjects.alertEvent(tenant, ">")],
        from: events.next,
        to: lastEvent,
        headersOnly: true
      },
      seeEvent
    )
    if (tenant === undefined && events.messages > 0 && events.next <= lastEvent)
      eventsGone(events.next, lastEvent, "somebody removed them")
    events.next = Math.max(events.next, lastEvent + 1)
  })

  /** Lets go of what ended well long ago. */
  const forgetSettled = () => ledger.forgetSettled()

  return {
    ledger,
    headers,
    leftOut,
    events,
    history,
    endpoints,
    objections,
    planCheck,
    readConfiguration: readChanges,
    readEvents,
    readHistory,
    forgetSettled
  }
})

export type Books = Effect.Success<ReturnType<typeof openBooks>>

const wordsFor = (
  objection: "unreadable-fact" | "plans-differ" | "fact-before-event",
  seq: number
): string => {
  switch (objection) {
    case "unreadable-fact":
      return `record ${seq} of the history is no fact that this version can read`
    case "plans-differ":
      return `fact ${seq} plans an event anew that was planned otherwise before`
    case "fact-before-event":
      return `fact ${seq} was stored before the event that it is about`
  }
}
