import type { JsMsg } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { firstSince, readStream, seeStream, storedAt } from "../broker/scan.ts"
import { maxNodeSkewMs } from "../domain/clock-bounds.ts"
import type { EventIdentity } from "../domain/event.ts"
import { eventName, readEventName } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"
import { nobody } from "../domain/token.ts"
import { decodeFact, readFact } from "./fact-at.ts"

/** A part of an event's plan where the history tells it. */
export interface ToldPlan extends EventIdentity {
  readonly tenant: string
  readonly plan: Plan
  /** In the history. */
  readonly seq: number
}

/** Under which the history takes a part of an event's plan once, whichever fact tells it. */
export const planId = (event: EventIdentity, part: number): string =>
  `routed.${eventName(event)}.${part}`

const planIdPattern = /^routed\.(.+)\.(\d+)$/

/** Which event's plan a fact tells, and which part of it, by its headers alone. */
const toldBy = ({ headers }: Pick<JsMsg, "headers">) => {
  const [, name = "", part] = planIdPattern.exec(headers?.get("Nats-Msg-Id") ?? "") ?? []
  return part === undefined ? undefined : { name, part: Number(part) }
}

/** Of facts that may tell plans. */
const planSubjects = (names: Names, tenant: string): ReadonlyArray<string> => [
  names.subjects.fact(tenant, nobody, "ok", "routed"),
  names.subjects.fact(tenant, "*", "ok", "delivered")
]

/**
 * Shows the plans that are told from a time on, in their order, whichever fact tells them.
 *
 * @param tenant whose; `*` for all.
 * @param fromTime ms since the epoch, of when the broker stored a fact.
 */
export const readPlans = Effect.fnUntraced(function* (
  tenant: string,
  fromTime: number,
  see: (told: ToldPlan) => void
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
        // Most successes tell none.
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

/** Its parts are there from the first to the last. */
const isComplete = (parts: ReadonlyArray<ToldPlan>): boolean => {
  const told = parts.filter(() => true)
  return told.length === parts.length && told.at(-1)?.plan.last === true
}

/** Where the plans of events that are not complete are looked for when some were found. */
const after = (
  { seq, timestampNanos }: Pick<JsMsg, "seq" | "timestampNanos">,
  open: ReadonlyArray<{ readonly from: number }>
) => {
  const from = Math.min(...open.map((event) => event.from))
  if (from === Number.POSITIVE_INFINITY) return undefined
  // One of several parts goes on from there.
  return from <= storedAt({ timestampNanos }) ? { fromSeq: seq + 1 } : { fromTime: from }
}

/**
 * The plans of these events, as far as the history has them, by the events' names: of each part the
 * one that was told first counts. A plan is looked for from when its event was stored, by ids alone,
 * and no further than it is found: between an old event and a young one there may be millions.
 */
export const findPlans = Effect.fnUntraced(function* (events: ReadonlyArray<EventIdentity>) {
  const { names } = yield* Broker
  const found = new Map<string, Array<ToldPlan>>()
  let open = events
    .map((event) => ({ name: eventName(event), from: event.eventAt - maxNodeSkewMs }))
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
        const name = toldBy(message)?.name ?? ""
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

/**
 * The highest sequence of an event whose plan is told since a time; 0 where there is none.
 *
 * Events are planned in their order, but for those that somebody has in hand meanwhile. So it is
 * enough to read as many plans from the end as there may be of these, and one more.
 *
 * @param inHand how many events may be in hand at once.
 */
export const newestPlanned = Effect.fnUntraced(function* (since: number, prefetch: number) {
  const { ask, jsm, names } = yield* Broker
  const { state } = yield* ask("look at the history", () => jsm.streams.info(names.history))
  const first = yield* firstSince(names.history, since - maxNodeSkewMs)
  const read = Effect.fnUntraced(function* (
    window: number
  ): Effect.fn.Return<number, BrokerError, Broker> {
    const fromSeq = Math.max(first, state.last_seq - window + 1)
    if (fromSeq > state.last_seq) return 0
    let newest = 0
    let plans = 0
    const range = {
      stream: names.history,
      subjects: planSubjects(names, "*"),
      fromSeq,
      headersOnly: true
    }
    yield* seeStream(range, (message) => {
      const told = toldBy(message)
      if (told?.part !== 0) return false
      plans++
      newest = Math.max(newest, readEventName(told.name)?.eventSeq ?? 0)
      return false
    })
    return plans > prefetch || fromSeq <= first ? newest : yield* read(4 * window)
  })
  return yield* read(2 * prefetch)
})
