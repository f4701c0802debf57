import { Effect, Option, Semaphore, Stream } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { readStream, scanQueue } from "../../broker/scan.ts"
import type { Progress } from "../../domain/delivery.ts"
import { eventNameIn, firstRound } from "../../domain/delivery.ts"
import type { Event, EventIdentity } from "../../domain/event.ts"
import { eventName } from "../../domain/event.ts"
import type { Planned } from "../../domain/fact.ts"
import { successKinds } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import { decodeFact } from "../../history/fact-at.ts"
import { readPlans } from "../../history/plans.ts"
import { progressFrom } from "../memory/straights.ts"
import type { StoredPart } from "./plan.ts"

/** An event whose routing was begun: its plan as far as it is stored, and who has a delivery of it. */
export interface Begun {
  readonly tenant: string
  /** When it was stored, ms since the epoch. */
  readonly at: number
  readonly parts: Array<StoredPart>
  readonly sent: Set<string>
  /** Who has none yet, and what is known from an attempt that was made from the event. */
  readonly failed: Map<string, Progress>
}

/** Of an event whose plan is not stored. */
export const nothing = ({ at, tenant }: Pick<Event, "at" | "tenant">): Begun => ({
  tenant,
  at,
  parts: [],
  sent: new Set(),
  failed: new Map()
})

/** What is known of the delivery to one endpoint. */
export interface Found {
  /** It is in its queue, has gone on from there, or has ended. */
  readonly isSent: boolean
  /** Where an attempt from the event did not succeed. */
  readonly failed: Progress | undefined
}

/** Endpoints up to which the history is read for each of them, and beyond which as a whole. */
const few = 8
/** By how much the clocks of a cluster's nodes may differ, ms. */
const clocksApart = 60_000

type Target = readonly [tenant: string, id: string]

/** Events whose routing was begun, by their names. */
type Events = ReadonlyMap<string, Begun>

const findQueued = Effect.fnUntraced(function* (
  events: Events,
  wanted: ReadonlyArray<Target>,
  partitions: number
) {
  const { names } = yield* Broker
  yield* Effect.forEach(
    wanted,
    ([tenant, id]) => {
      const partition = partitionOf(tenant, id, partitions)
      const subject = names.subjects.delivery(partition, tenant, id)
      return Stream.runForEach(scanQueue(names.deliveries(partition), subject), ({ header }) =>
        Effect.sync(() => {
          if (header.get("petrel-round") === firstRound)
            events.get(eventNameIn((name) => header.get(name)))?.sent.add(id)
        })
      )
    },
    { concurrency: 4, discard: true }
  )
})

/**
 * From where the history may tell of what became of the plans: from the first of them on, where it is
 * still where it was stored. A history that lost its end gives the sequence to another fact, and then
 * the time of the events says so.
 */
const beginningOf = Effect.fnUntraced(function* (events: Events) {
  const { ask, jsm, names } = yield* Broker
  let seq = Number.POSITIVE_INFINITY
  let at = Number.POSITIVE_INFINITY
  for (const begun of events.values()) {
    at = Math.min(at, begun.at)
    for (const part of begun.parts) seq = Math.min(seq, part.seq)
  }
  const first = yield* ask("read a plan", () => jsm.streams.getMessage(names.history, { seq }))
  const fact = first === null ? Option.none() : decodeFact(first.string())
  const isPlan = Option.exists(
    fact,
    ({ eventAt = 0, eventSeq = 0, plan }) =>
      plan !== undefined && events.has(eventName({ eventSeq, eventAt }))
  )
  const time = Math.max(0, (isPlan && first !== null ? first.time.getTime() : at) - clocksApart)
  return { time, history: isPlan ? { fromSeq: seq } : { fromTime: time } }
})

/**
 * Finds out who has a delivery of the events already: it waits in its queue, in the backlog, or the
 * history tells of it. In this order, for that is how deliveries go.
 */
const findSent = Effect.fnUntraced(function* (events: Events, partitions: number) {
  const { names } = yield* Broker
  const wanted = new Map<string, Target>()
  for (const { parts, tenant } of events.values())
    for (const { plan } of parts)
      for (const { id } of plan.endpoints) wanted.set(`${tenant}.${id}`, [tenant, id])
  if (wanted.size === 0) return

  yield* findQueued(events, [...wanted.values()], partitions)

  const beginning = yield* beginningOf(events)
  const byPartition = Map.groupBy(wanted.values(), ([tenant, id]) =>
    partitionOf(tenant, id, partitions)
  )
  yield* Effect.forEach(
    byPartition,
    ([partition, those]) =>
      Stream.runForEach(
        readStream({
          stream: names.backlog(partition),
          subjects:
            those.length <= few
              ? those.map(([tenant, id]) => names.subjects.backlog(partition, tenant, id))
              : [names.subjects.backlogOf(partition)],
          fromTime: beginning.time,
          headersOnly: true
        }),
        ({ headers, subject }) =>
          Effect.sync(() => {
            if (headers?.get("petrel-round") !== firstRound) return
            const id = subject.slice(subject.lastIndexOf(".") + 1)
            events.get(eventNameIn((name) => headers.get(name)))?.sent.add(id)
          })
      ),
    { concurrency: 4, discard: true }
  )

  const of = wanted.size <= few ? [...wanted.values()] : [["*", "*"] as const]
  yield* Stream.runForEach(
    readStream({
      stream: names.history,
      subjects: of.flatMap(([tenant, id]) => [
        ...successKinds.map((kind) => names.subjects.fact(tenant, id, "ok", kind)),
        // Not what an audit has missed, and told of.
        names.subjects.fact(tenant, id, "failure", "attempt-failed"),
        names.subjects.fact(tenant, id, "failure", "dead-lettered")
      ]),
      ...beginning.history
    }),
    (message) =>
      Effect.sync(() => {
        const fact = Option.getOrUndefined(decodeFact(message.string()))
        const { eventAt, eventSeq, round } = fact ?? {}
        if (fact === undefined || eventSeq === undefined || eventAt === undefined) return
        const begun = events.get(eventName({ eventSeq, eventAt }))
        if (begun === undefined || round !== firstRound) return
        const failed = progressFrom(fact, names.events)
        if (failed === undefined) begun.sent.add(fact.endpoint)
        else begun.failed.set(fact.endpoint, failed)
      })
  )
  yield* findPostponed(events, partitions)
})

/** Finds those that failed when they were attempted from their events and wait as schedules since. */
const findPostponed = Effect.fnUntraced(function* (events: Events, partitions: number) {
  const { names } = yield* Broker
  const those: Array<Target> = []
  for (const { failed, sent, tenant } of events.values())
    for (const id of failed.keys()) if (!sent.has(id)) those.push([tenant, id])
  yield* Effect.forEach(
    new Set(those.map(([tenant, id]) => partitionOf(tenant, id, partitions))),
    (partition) =>
      Stream.runForEach(
        scanQueue(names.deliveries(partition), names.subjects.laterOf(partition)),
        ({ header }) =>
          Effect.sync(() => {
            if (header.get("petrel-round") !== firstRound) return
            const target = header.get("Nats-Schedule-Target")
            const id = target.slice(target.lastIndexOf(".") + 1)
            events.get(eventNameIn((name) => header.get(name)))?.sent.add(id)
          })
      ),
    { concurrency: 4, discard: true }
  )
  // It may have fired while the queues were read, or since.
  yield* findQueued(events, those, partitions)
})

/** Deliveries that are looked for together. */
interface Search {
  readonly events: Map<string, Begun>
  readonly done: Effect.Effect<void, BrokerError>
}

/**
 * Makes what looks what became of the delivery to one endpoint of a plan. What is asked while others
 * are looked for is looked for together after that: one by one each would read the same streams.
 */
export const makeLook = Effect.fnUntraced(function* (partitions: number) {
  const context = yield* Effect.context<Broker>()
  const one = yield* Semaphore.make(1)
  let next: Search | undefined

  const begin = Effect.gen(function* () {
    const events = new Map<string, Begun>()
    const find = Effect.suspend(() => {
      if (next === search) next = undefined
      return findSent(events, partitions)
    })
    const done = yield* Effect.cached(Effect.provideContext(one.withPermit(find), context))
    const search: Search = { events, done }
    return search
  })

  return Effect.fnUntraced(function* (
    event: Pick<Event, "at" | "seq" | "tenant">,
    planned: Planned,
    { plan, seq }: StoredPart
  ) {
    const search = next ?? (yield* begin)
    next = search
    const name = eventName({ eventSeq: event.seq, eventAt: event.at })
    const begun = search.events.get(name) ?? nothing(event)
    begun.parts.push({ plan: { ...plan, endpoints: [planned] }, seq })
    search.events.set(name, begun)
    yield* search.done
    const found: Found = {
      isSent: begun.sent.has(planned.id),
      failed: begun.failed.get(planned.id)
    }
    return found
  })
})

/** The events that the router has not finished and whose plan is stored, however long ago. */
const readBegun = Effect.fnUntraced(function* (partitions: number) {
  const { ask, jsm, names } = yield* Broker
  const found = new Map<string, Begun>()
  const consumer = yield* ask("look at the router", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  const floor = consumer.ack_floor.stream_seq
  const { state } = yield* ask("look at the events", () => jsm.streams.info(names.events))
  const seq = Math.max(floor + 1, state.first_seq)
  if (seq > state.last_seq) return found
  const first = yield* ask("read the first unrouted event", () =>
    jsm.streams.getMessage(names.events, { seq })
  )
  const fromTime = first?.time.getTime() ?? Date.parse(state.first_ts)
  yield* readPlans("*", fromTime, ({ plan, seq, tenant, ...event }) => {
    if (event.eventSeq <= floor) return
    const name = eventName(event)
    const begun = found.get(name) ?? nothing({ tenant, at: event.eventAt })
    begun.parts[plan.part] ??= { plan, seq }
    found.set(name, begun)
  })
  yield* findSent(found, partitions)
  return found
})

/**
 * What is known of events that somebody has begun to route. Read once, for what is stored from
 * then on the broker recognises by its `Nats-Msg-Id`; again after a reconnect, since a broker that
 * was restarted has forgotten the ids of deliveries that are no longer in their stream; and again
 * for an event that comes back when the reading is older than `patience`.
 *
 * @param patience half of the time for which the broker remembers ids, ms.
 */
export const makeBegun = Effect.fnUntraced(function* (partitions: number, patience: number) {
  const context = yield* Effect.context<Broker>()
  const { onReconnect } = yield* Broker
  const one = yield* Semaphore.make(1)
  let known: { readonly at: number; readonly events: Events } | undefined
  let epoch = 0
  const forget = () => {
    epoch++
    known = undefined
  }
  const stop = onReconnect(forget)
  yield* Effect.addFinalizer(() => Effect.sync(stop))

  const isYoung = (age: number) => known !== undefined && performance.now() - known.at <= age

  const read = Effect.gen(function* () {
    const [at, begunIn] = [performance.now(), epoch]
    const events = yield* readBegun(partitions)
    if (epoch === begunIn) known = { at, events }
    return events
  }).pipe(Effect.provideContext(context))

  const events = (age: number) =>
    Effect.suspend(() =>
      known !== undefined && isYoung(age)
        ? Effect.succeed(known.events)
        : one.withPermit(
            Effect.suspend(() =>
              known !== undefined && isYoung(age) ? Effect.succeed(known.events) : read
            )
          )
    )

  return {
    /** True where it is known, without asking, that nobody has begun an event. */
    isNew: (event: EventIdentity, redelivered: boolean) =>
      !redelivered &&
      known !== undefined &&
      // Nearly always there is none, and a name costs more than all else here.
      (known.events.size === 0 || !known.events.has(eventName(event))),
    /** Makes sure that there is a reading. */
    ready: Effect.asVoid(events(Number.POSITIVE_INFINITY)),
    /** What is known of an event that was handed out; undefined where nobody has begun it. */
    of: (event: EventIdentity, redelivered: boolean) =>
      Effect.map(events(redelivered ? patience : Number.POSITIVE_INFINITY), (all) =>
        all.get(eventName(event))
      ),
    /** An event was given back half-done: nothing is known until it is read again. */
    forget
  }
})
