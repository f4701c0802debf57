import type { JsMsg } from "@nats-io/jetstream"
import { Effect, Option } from "effect"
import { Broker } from "../broker/broker.ts"
import { headerOf } from "../broker/headers.ts"
import { undroppedSince } from "../broker/kept-since.ts"
import { seeStream, storedAt } from "../broker/scan.ts"
import { firstRound, roundKey } from "../domain/delivery.ts"
import type { EventIdentity } from "../domain/event.ts"
import {
  eventId,
  eventName,
  idOfTenant,
  parseEventSubject,
  subjectWithId
} from "../domain/event.ts"
import type { Fact } from "../domain/fact.ts"
import { isSuccess, successKinds } from "../domain/fact.ts"
import { givenId } from "../domain/intake.ts"
import type { Names } from "../domain/names.ts"
import { readRepeat } from "../domain/origin.ts"
import { invalid } from "../domain/problem.ts"
import { nobody } from "../domain/token.ts"
import { isOwnType, TypeIndex } from "../domain/type-filter.ts"
import { decodeFact, eventSeqIn } from "../history/delivery-facts.ts"
import { readPlans } from "../history/plans.ts"

/** Which events to replay to an endpoint. Times of storage, ms since the epoch. */
export interface ReplayQuery {
  readonly tenant: string
  readonly endpoint: string
  /** NATS wildcards. One of them must match. */
  readonly types: ReadonlyArray<string>
  readonly since: number
  readonly until: number
  /** Only events of this id, as receivers see it or without the tenant in front. (Default: all) */
  readonly event?: string | undefined
  /** Only events that a plan skipped because the endpoint was disabled, and that no replay sent. */
  readonly skipped: boolean
  /** Excludes events that the endpoint has, that are on their way to it, or that are not routed yet. */
  readonly onlyMissing: boolean
  /** The round of this replay. Its own earlier deliveries do not exclude an event. */
  readonly round: string
}

/** Where a chunk of a selection begins and ends. */
interface ChunkLimits {
  /** `next` of the chunk before: of EVENTS or, for what was skipped, of HISTORY. */
  readonly after: number | undefined
  /** Most events that are looked at. */
  readonly most: number
}

/** An event to replay. */
interface SelectedEvent extends EventIdentity {
  readonly type: string
}

/** Facts may appear this much older than their events, due to the clocks of a cluster's servers, ms. */
const clocksApart = 60_000

/** Types whose match is remembered. */
const maxKnownTypes = 10_000

const matcher = (types: ReadonlyArray<string>) => {
  const index = new TypeIndex<true>()
  index.add(types, true)
  const known = new Map<string, boolean>()
  return (type: string): boolean => {
    const before = known.get(type)
    if (before !== undefined) return before
    const matches = index.match(type).size > 0
    if (known.size === maxKnownTypes) known.clear()
    known.set(type, matches)
    return matches
  }
}

/** Returns the subject of a single filter, or else all: the broker rejects overlapping filters. */
const subjectsOf = ({ tenant, types }: ReplayQuery, { subjects }: Names): ReadonlyArray<string> => {
  const [only = ">", another] = types
  if (another !== undefined) return [subjects.event(tenant, ">"), subjects.alertEvent(tenant, ">")]
  return [isOwnType(only) ? subjects.alertEvent(tenant, only) : subjects.event(tenant, only)]
}

/** Reads the next events of the range from their headers. */
const eventsIn = Effect.fnUntraced(function* (query: ReplayQuery, { after, most }: ChunkLimits) {
  const { names } = yield* Broker
  const { event, since, tenant, types, until } = query
  const wanted = event === undefined ? undefined : new Set([event, idOfTenant(tenant, event)])
  const matches = matcher(types)
  const events: Array<SelectedEvent> = []
  const range = {
    stream: names.events,
    subjects: subjectsOf(query, names),
    ...(after === undefined ? { fromTime: since } : { fromSeq: after + 1 }),
    headersOnly: true
  }
  yield* seeStream(range, (message) => {
    const eventAt = storedAt(message)
    if (eventAt > until) return true
    const header = headerOf(message.headers)
    if (wanted?.has(eventId(givenId(header), message.seq, eventAt)) === false) return false
    const parsed = subjectWithId(parseEventSubject(message.subject, names), header)
    if (!("problem" in parsed) && matches(parsed.type))
      events.push({ eventSeq: message.seq, eventAt, type: parsed.type })
    return events.length === most
  })
  return { events, next: events.length < most ? undefined : events.at(-1)?.eventSeq }
})

/** A kind of facts, as their subjects name it. */
type KindOfFacts = readonly [result: "ok" | "failure", kind: string]

/** Passes facts of the endpoint and, if `plans` is set, the plans of its tenant to `see`. */
const seeFacts = Effect.fnUntraced(function* (
  { endpoint, tenant }: Pick<ReplayQuery, "tenant" | "endpoint">,
  kinds: ReadonlyArray<KindOfFacts>,
  plans: boolean,
  from: { readonly fromTime: number } | { readonly fromSeq: number },
  see: (message: JsMsg) => boolean
) {
  const { names } = yield* Broker
  const { subjects } = names
  yield* seeStream(
    {
      stream: names.history,
      subjects: [
        ...kinds.map(([result, kind]) => subjects.fact(tenant, endpoint, result, kind)),
        ...(plans ? [subjects.fact(tenant, nobody, "ok", "routed")] : [])
      ],
      ...from
    },
    see
  )
})

const factIn = (text: string): Fact | undefined => Option.getOrUndefined(decodeFact(text))

const sinceEvent = (at: number) => ({ fromTime: Math.max(0, at - clocksApart) })

/** Reads the next events that plans skipped for the endpoint, in the order of the plans. */
const skippedByPlans = Effect.fnUntraced(function* (
  query: ReplayQuery,
  { after, most }: ChunkLimits
) {
  const { endpoint, since, types, until } = query
  const matches = matcher(types)
  const found = new Map<string, SelectedEvent>()
  let last: number | undefined
  const from = after === undefined ? sinceEvent(since) : { fromSeq: after + 1 }
  yield* seeFacts(query, [], true, from, (message) => {
    if (storedAt(message) > until + clocksApart) return true
    const { at, eventAt, eventSeq, plan, type = "" } = factIn(message.string()) ?? {}
    if (eventSeq === undefined || eventAt === undefined || at === undefined) return false
    if (at < since || at > until || !matches(type)) return false
    if (plan?.skipped.some(({ id }) => id === endpoint) !== true) return false
    found.set(eventName({ eventSeq, eventAt }), { eventSeq, eventAt, type })
    last = message.seq
    return found.size === most
  })
  return { found, next: found.size < most ? undefined : last }
})

/** Reads the next events that plans skipped for the endpoint and that no other replay sent. */
const skippedIn = Effect.fnUntraced(function* (query: ReplayQuery, limits: ChunkLimits) {
  const { found, next } = yield* skippedByPlans(query, limits)
  const first = limits.after === undefined ? sinceEvent(query.since) : { fromSeq: limits.after + 1 }
  const isFound = among(found.values())
  if (found.size > 0)
    yield* seeFacts(query, [["ok", "replayed"]], false, first, (message) => {
      const text = message.string()
      if (!isFound(text)) return false
      const { eventAt, eventSeq, round } = factIn(text) ?? {}
      if (eventSeq !== undefined && eventAt !== undefined && round !== query.round)
        found.delete(eventName({ eventSeq, eventAt }))
      return false
    })
  return { events: [...found.values()].sort((a, b) => a.eventSeq - b.eventSeq), next }
})

/** Returns whether a fact, by its text, may be about one of some events. */
const among = (events: Iterable<EventIdentity>) => {
  const sequences = new Set<number>()
  for (const { eventSeq } of events) sequences.add(eventSeq)
  return (text: string): boolean => sequences.has(eventSeqIn(text))
}

/** Returns whether an event, of some of a tenant, has its whole plan. */
const routedNow = Effect.fnUntraced(function* (tenant: string, wanted: ReadonlySet<string>) {
  const { consumerInfo, names, readMessage, streamInfo } = yield* Broker
  const { ack_floor } = yield* consumerInfo(
    "look at the router",
    names.events,
    names.routerConsumer
  )
  const floor = ack_floor.stream_seq
  const { state } = yield* streamInfo("look at the events", names.events)
  const planned = new Set<string>()
  const isRouted = (event: EventIdentity) =>
    event.eventSeq <= floor || planned.has(eventName(event))
  if (floor >= state.last_seq) return isRouted

  const seq = Math.max(floor + 1, state.first_seq)
  const first = yield* readMessage("read the first event that is not routed", names.events, { seq })
  const since = first?.time.getTime() ?? Date.parse(state.first_ts)
  yield* readPlans(tenant, since - clocksApart, ({ plan, ...event }) => {
    if (plan.last && wanted.has(eventName(event))) planned.add(eventName(event))
  })
  return isRouted
})

const takingKinds: ReadonlyArray<KindOfFacts> = [
  ...successKinds.map((kind) => ["ok", kind] as const),
  ["ok", "redelivered"],
  ["ok", "replayed"],
  ["failure", "dead-lettered"]
]

/**
 * Reads which of some events the endpoint has, or will get anyway, in rounds other than this
 * replay's.
 */
const takenOf = Effect.fnUntraced(function* (
  query: ReplayQuery,
  events: ReadonlyArray<SelectedEvent>
) {
  const { endpoint } = query
  const wanted = new Set(events.map(eventName))
  // Read before the facts, so that the facts of everything planned until now are there.
  const isRouted = yield* routedNow(query.tenant, wanted)
  const delivered = new Set<string>()
  const open = new Map<string, string>()
  const note = ({ eventAt, eventSeq, kind, plan, reason, round = "" }: Fact) => {
    if (eventSeq === undefined || eventAt === undefined) return
    const event = { eventSeq, eventAt }
    const name = eventName(event)
    if (!wanted.has(name)) return
    if (kind === "routed") {
      // The endpoint gets, or got, the event that this one repeats.
      if (readRepeat(reason) !== undefined) delivered.add(name)
      if (plan?.endpoints.some(({ id }) => id === endpoint) === true)
        open.set(roundKey({ ...event, round: firstRound }), name)
      return
    }
    if (round === query.round) return
    const key = roundKey({ ...event, round })
    if (kind === "redelivered" || kind === "replayed") {
      open.set(key, name)
      return
    }
    open.delete(key)
    if (isSuccess(kind)) delivered.add(name)
  }
  const isAmong = among(events)
  const from = sinceEvent(
    events.reduce((least, { eventAt }) => Math.min(least, eventAt), Number.POSITIVE_INFINITY)
  )
  yield* seeFacts(query, takingKinds, true, from, (message) => {
    const text = message.string()
    const fact = isAmong(text) ? factIn(text) : undefined
    if (fact !== undefined) note(fact)
    return false
  })
  return { delivered, open: new Set(open.values()), isRouted }
})

/** Returns when the first event of the tenant in a range was stored, if there is one. */
const firstEventAt = Effect.fnUntraced(function* ({ since, tenant, until }: ReplayQuery) {
  const { names } = yield* Broker
  const { subjects } = names
  let at: number | undefined
  yield* seeStream(
    {
      stream: names.events,
      subjects: [subjects.event(tenant, ">"), subjects.alertEvent(tenant, ">")],
      fromTime: since,
      headersOnly: true
    },
    (message) => {
      at = storedAt(message)
      return true
    }
  )
  return at !== undefined && at <= until ? at : undefined
})

/**
 * Fails if the history may have dropped facts that decide which of these events are missing. To be
 * called when they were read: the history may drop more meanwhile.
 */
const refuseForgotten = Effect.fnUntraced(function* (
  query: ReplayQuery,
  events: ReadonlyArray<SelectedEvent>,
  { after }: ChunkLimits
) {
  const { names, streamInfo } = yield* Broker
  const history = yield* streamInfo("look at the history", names.history)
  const known = undroppedSince(history)
  if (known <= query.since) return
  // Of what was skipped, the facts that are gone do not even name the events.
  const first = query.skipped
    ? after === undefined
      ? yield* firstEventAt(query)
      : after + 1 < history.state.first_seq
        ? query.since
        : undefined
    : events[0]?.eventAt
  if (first === undefined || first >= known) return
  return yield* invalid(
    "since",
    `must be ${new Date(known).toISOString()} or later with ${query.skipped ? "`skipped`" : "`onlyMissing`"}: the history no longer has older facts, so what became of events before that is not known`
  )
})

/** Events that are selected together, and the numbers of those excluded. */
export interface SelectedChunk {
  readonly events: ReadonlyArray<SelectedEvent>
  readonly delivered: number
  readonly open: number
  readonly unrouted: number
  /** What the next chunk comes after; undefined after the last one. */
  readonly next: number | undefined
}

/**
 * Returns the next selected events in order, and the number of those excluded: delivered, under
 * way, or not routed yet. Memory depends on `most` only, not on the size of the range.
 */
export const selectChunk = Effect.fnUntraced(function* (query: ReplayQuery, limits: ChunkLimits) {
  const { events, next } = yield* query.skipped ? skippedIn(query, limits) : eventsIn(query, limits)
  if (!query.onlyMissing || events.length === 0) {
    if (query.skipped) yield* refuseForgotten(query, events, limits)
    return { events, delivered: 0, open: 0, unrouted: 0, next } satisfies SelectedChunk
  }
  const taken = yield* takenOf(query, events)
  yield* refuseForgotten(query, events, limits)
  let delivered = 0
  let open = 0
  let unrouted = 0
  const missing = events.filter((event) => {
    const name = eventName(event)
    if (taken.delivered.has(name)) delivered++
    else if (taken.open.has(name)) open++
    else if (!taken.isRouted(event)) unrouted++
    else return true
    return false
  })
  return { events: missing, delivered, open, unrouted, next } satisfies SelectedChunk
})
