import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { EndpointLife } from "../fold/endpoint.ts"
import { afterEndpointFact, newEndpoint } from "../fold/endpoint.ts"
import { Digests } from "./digest.ts"
import { Ledger } from "./ledger.ts"
import type { Problem } from "./problem.ts"
import type { Reach } from "./reach.ts"
import type { Seen } from "./reading.ts"
import { readThrough } from "./reading.ts"
import { readRecord, strictly } from "./record.ts"

/** How far the reading of a stream has come. */
export interface Reading {
  /** The next sequence to be read. */
  next: number
  /** The last that is to be read now. */
  to: number
  messages: number
  readonly digests: Digests
}

const millisOf = (nanoseconds: string): number => Math.floor(Number(nanoseconds) / 1e6)

const circuitKinds: ReadonlySet<unknown> = new Set([
  "circuit-opened",
  "circuit-half-opened",
  "circuit-closed",
  "endpoint-disabled",
  "endpoint-enabled"
])

/**
 * The events and the facts of a range, read once each in their order, as far as the streams go at
 * the moment; and on from there, as often as it is asked.
 */
export const openBooks = (reach: Reach, marks: { events?: number; history?: number } = {}) => {
  const ledger = new Ledger(reach.scope)
  const reading = (next: number, mark?: number): Reading => ({
    next,
    to: next - 1,
    messages: 0,
    digests: new Digests(mark)
  })
  const events = reading(reach.scope.firstEvent, marks.events)
  const history = reading(reach.firstFact, marks.history)
  /** Circuits as the facts tell of them, by `<tenant>.<endpoint>`. */
  const endpoints = new Map<string, EndpointLife>()
  const objections: Array<Problem> = []
  let isGapless = false

  const seeEvent = (seen: Seen) => {
    events.messages++
    events.digests.add(seen)
    ledger.event(seen.seq)
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
    history.next = seq + 1
    history.messages++
    history.digests.add(seen)
    const record = readRecord(message.string())
    const objection =
      record === undefined ? "unreadable-fact" : ledger.fact(record, millisOf(nanoseconds))
    if (objection !== undefined)
      objections.push({ kind: objection, seq, says: wordsFor(objection, seq) })
    if (record !== undefined && circuitKinds.has(record.kind)) {
      const fact = strictly(record)
      if (fact === undefined) return
      const key = `${fact.tenant}.${fact.endpoint}`
      endpoints.set(key, afterEndpointFact(endpoints.get(key) ?? newEndpoint, fact))
    }
  }

  const readHistory = Effect.gen(function* () {
    const { ask, jsm, names } = yield* Broker
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
  })

  const readEvents = Effect.gen(function* () {
    const { names } = yield* Broker
    const { lastEvent, tenant } = ledger.scope
    events.to = lastEvent
    yield* readThrough(
      {
        stream: names.events,
        subjects: [
          tenant === undefined ? names.subjects.allEvents : `${names.eventRoot}.${tenant}.>`
        ],
        from: events.next,
        to: lastEvent,
        headersOnly: true
      },
      (seen) => {
        events.next = seen.seq + 1
        seeEvent(seen)
      }
    )
    events.next = Math.max(events.next, lastEvent + 1)
  })

  return { ledger, events, history, endpoints, objections, readEvents, readHistory }
}

export type Books = ReturnType<typeof openBooks>

const wordsFor = (objection: "unreadable-fact" | "plans-differ", seq: number): string =>
  objection === "unreadable-fact"
    ? `record ${seq} of the history is no fact that this version can read`
    : `fact ${seq} plans an event anew that was planned otherwise before`
