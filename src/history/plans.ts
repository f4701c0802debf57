import type { JsMsg, StreamInfo } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { firstSince, readStream, seeStream, storedAt } from "../broker/scan.ts"
import { maxClockStepMs, maxNodeSkewMs } from "../domain/clock-bounds.ts"
import type { EventIdentity } from "../domain/event.ts"
import { eventName, readEventName } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"
import { nobody } from "../domain/token.ts"
import { decodeFact, readFact } from "./delivery-facts.ts"

/** A part of an event's plan, as a fact in the history records it. */
interface RecordedPlan extends EventIdentity {
  readonly tenant: string
  readonly plan: Plan
  /** In the history. */
  readonly seq: number
}

/** Message id of a part of an event's plan. It stores the part once, whichever fact carries it. */
export const planId = (event: EventIdentity, part: number): string =>
  `routed.${eventName(event)}.${part}`

const planIdPattern = /^routed\.(.+)\.(\d+)$/

/** The event and the part of the plan that a fact carries, from its headers alone. */
const partNameIn = ({ headers }: Pick<JsMsg, "headers">) => {
  const [, name = "", part] = planIdPattern.exec(headers?.get("Nats-Msg-Id") ?? "") ?? []
  return part === undefined ? undefined : { name, part: Number(part) }
}

/** Subjects of facts that may carry plans. */
const planSubjects = (names: Names, tenant: string): ReadonlyArray<string> => [
  names.subjects.fact(tenant, nobody, "ok", "routed"),
  names.subjects.fact(tenant, "*", "ok", "delivered")
]

/**
 * Reads the plans that were recorded since a time, in the order of the history, whichever fact
 * carries them.
 *
 * @param tenant `*` for all tenants.
 * @param fromTime when the broker stored the fact, ms since the epoch.
 */
export const readPlans = Effect.fnUntraced(function* (
  tenant: string,
  fromTime: number,
  see: (plan: RecordedPlan) => void
) {
  const { names } = yield* Broker
  yield* readStream({
    stream: names.history,
    subjects: planSubjects(names, tenant),
    fromTime: Math.max(0, fromTime)
  }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const text = message.string()
        // Most successes carry no plan.
        if (!text.includes('"plan"')) return
        const fact = Option.getOrUndefined(decodeFact(text))
        const { eventAt, eventSeq, plan } = fact ?? {}
        if (fact === undefined || plan === undefined) return
        if (eventSeq === undefined || eventAt === undefined) return
        see({ tenant: fact.tenant, eventSeq, eventAt, plan, seq: message.seq })
      })
    )
  )
})

/** How long before an event its plan may seem to have been stored, ms. */
const maxAheadMs = ({ cluster }: StreamInfo): number =>
  cluster?.name === undefined ? maxClockStepMs : maxNodeSkewMs

/** Whether all parts of a plan are present. */
const isComplete = (parts: ReadonlyArray<RecordedPlan>): boolean => {
  const present = parts.filter(() => true)
  return present.length === parts.length && present.at(-1)?.plan.last === true
}

/** Where to continue the search for the plans of events whose plan is not complete yet. */
const after = (
  { seq, timestampNanos }: Pick<JsMsg, "seq" | "timestampNanos">,
  open: ReadonlyArray<{ readonly from: number }>
) => {
  const from = Math.min(...open.map((event) => event.from))
  if (from === Number.POSITIVE_INFINITY) return undefined
  // If one part was found, the next one lies behind it.
  return from <= storedAt({ timestampNanos }) ? { fromSeq: seq + 1 } : { fromTime: from }
}

/**
 * Finds the plans of these events in the history, by the events' names. If a part was recorded
 * twice, the first record counts. The search for a plan begins at the time of its event, reads ids
 * only, and ends where the plan is complete: millions of facts may lie between two events.
 */
export const findPlans = Effect.fnUntraced(function* (events: ReadonlyArray<EventIdentity>) {
  const { names, streamInfo } = yield* Broker
  const aheadMs = maxAheadMs(yield* streamInfo("look at the history", names.history))
  const found = new Map<string, Array<RecordedPlan>>()
  let open = events
    .map((event) => ({ name: eventName(event), from: event.eventAt - aheadMs }))
    .sort((a, b) => a.from - b.from)
  const take = Effect.fnUntraced(function* (seq: number) {
    const fact = Option.getOrUndefined(yield* readFact(seq))
    const { eventAt, eventSeq, plan } = fact ?? {}
    if (fact === undefined || plan === undefined) return
    if (eventSeq === undefined || eventAt === undefined) return
    const name = eventName({ eventSeq, eventAt })
    const parts = found.get(name) ?? []
    parts[plan.part] ??= { tenant: fact.tenant, eventSeq, eventAt, plan, seq }
    found.set(name, parts)
    if (isComplete(parts)) open = open.filter((event) => event.name !== name)
  })
  const [first] = open
  let range: { readonly fromSeq: number } | { readonly fromTime: number } | undefined =
    first === undefined ? undefined : { fromTime: Math.max(0, first.from) }
  while (range !== undefined) {
    const missing = new Map(open.map(({ from, name }) => [name, from]))
    const wanted = new Set(missing.keys())
    const seen: Array<number> = []
    let end: JsMsg | undefined
    yield* seeStream(
      { ...range, stream: names.history, subjects: planSubjects(names, "*"), headersOnly: true },
      (message) => {
        const name = partNameIn(message)?.name ?? ""
        if (!wanted.has(name)) return false
        seen.push(message.seq)
        missing.delete(name)
        const at = storedAt(message)
        for (const from of missing.values()) if (from <= at) return false
        end = message
        return true
      }
    )
    for (const seq of seen) yield* take(seq)
    range = end === undefined ? undefined : after(end, open)
  }
  return found
})

/** Tells which events count. */
export type IsWantedEvent = (event: EventIdentity & { readonly tenant: string }) => boolean

/**
 * Returns the highest sequence of an event whose plan was recorded since a time; 0 if none was.
 *
 * Events are planned in order, except for those in flight. So it is enough to read as many plans
 * from the end of the history as there may be events in flight, and one more.
 *
 * @param prefetch maximum number of events in flight.
 * @param isWanted (Default: all)
 */
export const newestPlanned = Effect.fnUntraced(function* (
  since: number,
  prefetch: number,
  isWanted: IsWantedEvent = () => true
) {
  const { names, streamInfo } = yield* Broker
  const info = yield* streamInfo("look at the history", names.history)
  const { state } = info
  const first = yield* firstSince(names.history, since - maxAheadMs(info))
  let newest = 0
  let plans = 0
  const readRange = (from: number, to: number) => {
    const range = {
      stream: names.history,
      subjects: planSubjects(names, "*"),
      fromSeq: from,
      headersOnly: true
    }
    return seeStream(range, (message) => {
      if (message.seq > to) return true
      const named = partNameIn(message)
      const event = named?.part === 0 ? readEventName(named.name) : undefined
      if (event === undefined) return false
      const tenant = names.tenantIn(message.subject) ?? ""
      if (!isWanted({ ...event, tenant })) return false
      plans++
      newest = Math.max(newest, event.eventSeq)
      return false
    })
  }
  let to = state.last_seq
  let width = 2 * prefetch
  while (plans <= prefetch && to >= first) {
    const from = Math.max(first, to - width + 1)
    yield* readRange(from, to)
    to = from - 1
    width *= 2
  }
  return newest
})
