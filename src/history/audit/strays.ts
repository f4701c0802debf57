import type { Loose } from "../fact-record.ts"
import { aboutOf, numberIn, textIn } from "../fact-record.ts"
import type { AuditProblem } from "./problem.ts"
import { goneTooEarly, type Scope, type StreamBeginning } from "./reach.ts"

/** Events that are not in the event stream any more. */
export const eventsGone = (from: number, to: number, why: string): AuditProblem => ({
  kind: "event-gap",
  eventSeq: from,
  says: `${from === to ? `event ${from} is` : `events ${from} to ${to} are`} not in the event stream any more: ${why}`
})

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
export class StrayFacts {
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
    ...(tenant === undefined ? {} : { tenant }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(event === undefined ? {} : { event }),
    ...{ eventSeq, seq },
    says: `fact ${seq} tells of event ${eventSeq}, and the event stream ends with event ${end}: no such event was stored, or the broker lost it`
  }
}
