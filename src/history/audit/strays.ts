import type { Beginning } from "./beginning.ts"
import { goneTooEarly } from "./beginning.ts"
import type { Problem } from "./problem.ts"
import type { Loose } from "./record.ts"
import { aboutOf, numberIn, textIn } from "./record.ts"
import type { Scope } from "./scope.ts"

/** Events that are not in the event stream any more. */
export const eventsGone = (from: number, to: number, why: string): Problem => ({
  kind: "event-gap",
  eventSeq: from,
  says: `${from === to ? `event ${from} is` : `events ${from} to ${to} are`} not in the event stream any more: ${why}`
})

/** A fact about an event that no plan names, beyond the end of the event stream. */
interface Beyond {
  readonly seq: number
  readonly eventSeq: number
  readonly record: Loose
}

/** Facts about events that are not in the event stream: beyond its end, or before its beginning too early. */
export class Strays {
  /** Where the event stream begins. */
  begins: Beginning
  /** The last event, as of a look after the facts were stored that are read. */
  #end = 0
  /** The last event beyond the end that a plan names. */
  #lastPlanned = 0
  /** The last event that was told of as lost. */
  #lostTo = 0
  #beyond: Array<Beyond> = []
  /** The first event that is gone too early, and the last one that was told of as gone. */
  #goneFrom: number | undefined
  #toldTo = 0

  constructor(begins: Beginning) {
    this.begins = begins
  }

  /** Takes in where the event stream ends: what comes before that is there, or was. */
  endAt(lastEvent: number): void {
    this.#end = lastEvent
    if (this.#lastPlanned <= lastEvent) this.#lastPlanned = 0
    this.#beyond = this.#beyond.filter(({ eventSeq }) => eventSeq > lastEvent)
  }

  /** True where it is to be looked again whether an event is there. */
  get isWaiting(): boolean {
    return this.#lastPlanned > 0 || this.#beyond.length > 0
  }

  /** Takes in the fact at a sequence of the history, which may be about any event or none. */
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
    // Its plan tells of the lost event already.
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
    if (eventSeq <= this.#toldTo || eventAt < since || eventAt > until) return
    this.#goneFrom = Math.min(this.#goneFrom ?? eventSeq, eventSeq)
  }

  /** What is wrong with all that was taken in; once. */
  problems(): ReadonlyArray<Problem> {
    const found: Array<Problem> = []
    if (this.#goneFrom !== undefined) found.push(this.tellRemoved(this.#goneFrom))
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

  /** What is wrong where events from this one on are gone too early: facts about them say nothing new. */
  tellRemoved(from: number): Problem {
    this.#toldTo = this.begins.first - 1
    return eventsGone(from, this.#toldTo, goneTooEarly)
  }
}

const outcomeOfNothing = (record: Loose, eventSeq: number, seq: number, end: number): Problem => {
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
