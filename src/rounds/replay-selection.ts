import type { JsMsg } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { headerOf } from "../broker/header-lookup.ts"
import { readStream, storedAt } from "../broker/scan.ts"
import { firstRound, roundKey } from "../domain/delivery.ts"
import type { EventIdentity } from "../domain/event.ts"
import { eventId, eventName, parseEventSubject, subjectWithId } from "../domain/event.ts"
import type { Fact } from "../domain/fact.ts"
import { isSuccess, successKinds } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"
import { readRepeat } from "../domain/origin.ts"
import { nobody } from "../domain/token.ts"
import { isOwnType, TypeIndex } from "../domain/type-filter.ts"
import { decodeFact } from "../history/fact-at.ts"
import { readPlans } from "../history/plans.ts"

/** Which events to replay to an endpoint. Times of storage, ms since the epoch. */
export interface ReplayQuery {
  readonly tenant: string
  readonly endpoint: string
  /** NATS wildcards. One of them must match. */
  readonly types: ReadonlyArray<string>
  readonly since: number
  readonly until: number
  /** Only events of this id, as receivers see it. (Default: all) */
  readonly event?: string | undefined
  /** Only events that a plan skipped because the endpoint was disabled, and that no replay sent. */
  readonly skipped: boolean
  /** Excludes events that the endpoint has, that are on their way to it, or that are not routed yet. */
  readonly onlyMissing: boolean
  /** The round of this replay. Its own earlier deliveries do not exclude an event. */
  readonly round: string
}

/** An event to replay. */
export interface SelectedEvent extends EventIdentity {
  readonly type: string
}

/** Facts may appear this much older than their events, due to the clocks of a cluster's servers, ms. */
const clocksApart = 60_000

const isUpTo = (until: number) => (message: JsMsg) => storedAt(message) <= until

const matcher = (types: ReadonlyArray<string>) => {
  const index = new TypeIndex<true>()
  index.add(types, true)
  const known = new Map<string, boolean>()
  return (type: string): boolean => {
    const before = known.get(type)
    if (before !== undefined) return before
    const matches = index.match(type).size > 0
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

/** Reads the events of the range from their headers. */
const eventsIn = Effect.fnUntraced(function* (query: ReplayQuery) {
  const { names } = yield* Broker
  const { since, types, until } = query
  const matches = matcher(types)
  const found: Array<SelectedEvent> = []
  yield* readStream({
    stream: names.events,
    subjects: subjectsOf(query, names),
    fromTime: since,
    headersOnly: true
  }).pipe(
    Stream.takeWhile(isUpTo(until)),
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const header = headerOf(message.headers)
        const eventAt = storedAt(message)
        const id =
          query.event === undefined
            ? undefined
            : eventId(header("nats-msg-id"), message.seq, eventAt)
        if (id !== query.event) return
        const parsed = subjectWithId(parseEventSubject(message.subject, names), header)
        if (!("problem" in parsed) && matches(parsed.type))
          found.push({ eventSeq: message.seq, eventAt, type: parsed.type })
      })
    )
  )
  return found
})

/** Reads facts of the endpoint and, if `plans` is set, the plans of its tenant. */
const factsOf = (
  { endpoint, tenant }: Pick<ReplayQuery, "tenant" | "endpoint">,
  kinds: ReadonlyArray<readonly [result: "ok" | "failure", kind: string]>,
  plans: boolean,
  since: number
) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { subjects } = names
      return readStream({
        stream: names.history,
        subjects: [
          ...kinds.map(([result, kind]) => subjects.fact(tenant, endpoint, result, kind)),
          ...(plans ? [subjects.fact(tenant, nobody, "ok", "routed")] : [])
        ],
        fromTime: Math.max(0, since - clocksApart)
      })
    })
  )

const factIn = (message: JsMsg): Fact | undefined =>
  Option.getOrUndefined(decodeFact(message.string()))

/** Reads the events that plans skipped for the endpoint and that no other replay sent. */
const skippedIn = Effect.fnUntraced(function* (query: ReplayQuery) {
  const { endpoint, since, types, until } = query
  const matches = matcher(types)
  const found = new Map<string, SelectedEvent>()
  const isLate = (message: JsMsg) => storedAt(message) > until + clocksApart
  yield* factsOf(query, [["ok", "replayed"]], true, since).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const { at, eventAt, eventSeq, kind, plan, round, type = "" } = factIn(message) ?? {}
        if (eventSeq === undefined || eventAt === undefined || at === undefined) return
        const name = eventName({ eventSeq, eventAt })
        if (kind === "replayed") {
          if (round !== query.round) found.delete(name)
          return
        }
        if (isLate(message) || at < since || at > until || !matches(type)) return
        if (plan?.skipped.some(({ id }) => id === endpoint) === true)
          found.set(name, { eventSeq, eventAt, type })
      })
    )
  )
  return [...found.values()].sort((a, b) => a.eventSeq - b.eventSeq)
})

/** Returns whether an event of a tenant has its whole plan. */
const routedNow = Effect.fnUntraced(function* (tenant: string) {
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
    if (plan.last) planned.add(eventName(event))
  })
  return isRouted
})

/** Reads what the endpoint has, or will get anyway, in rounds other than this replay's. */
const takenIn = Effect.fnUntraced(function* (query: ReplayQuery) {
  const { endpoint, since } = query
  // Read before the facts, so that the facts of everything planned until now are there.
  const isRouted = yield* routedNow(query.tenant)
  const delivered = new Set<string>()
  const open = new Map<string, string>()
  const note = ({ eventAt, eventSeq, kind, plan, reason, round = "" }: Fact) => {
    if (eventSeq === undefined || eventAt === undefined) return
    const event = { eventSeq, eventAt }
    const name = eventName(event)
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
  yield* factsOf(
    query,
    [
      ...successKinds.map((kind) => ["ok", kind] as const),
      ["ok", "redelivered"],
      ["ok", "replayed"],
      ["failure", "dead-lettered"]
    ],
    true,
    since
  ).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const fact = factIn(message)
        if (fact !== undefined) note(fact)
      })
    )
  )
  return { delivered, open: new Set(open.values()), isRouted }
})

/**
 * Returns the selected events in order, and the number of those excluded: delivered, under way, or
 * not routed yet.
 */
export const selectEvents = Effect.fnUntraced(function* (query: ReplayQuery) {
  const events = yield* query.skipped ? skippedIn(query) : eventsIn(query)
  if (!query.onlyMissing) return { events, delivered: 0, open: 0, unrouted: 0 }
  const taken = yield* takenIn(query)
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
  return { events: missing, delivered, open, unrouted }
})
