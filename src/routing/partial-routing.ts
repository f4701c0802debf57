import { Clock, Effect, Option, Semaphore, Stream } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { scanQueue, seeStream } from "../broker/scan.ts"
import { maxNodeSkewMs } from "../domain/clock-bounds.ts"
import type { Progress } from "../domain/delivery.ts"
import { eventNameIn, firstRound } from "../domain/delivery.ts"
import type { Event, EventIdentity } from "../domain/event.ts"
import { eventName, readEventName } from "../domain/event.ts"
import type { Planned } from "../domain/fact.ts"
import { successKinds } from "../domain/fact.ts"
import { partitionOf } from "../domain/names.ts"
import { progressFrom } from "../history/direct-progress.ts"
import { decodeFact } from "../history/fact-at.ts"
import { findPlans, newestPlanned } from "../history/plans.ts"
import type { StoredPart } from "./plan.ts"

/** An event whose routing was begun: its plan as far as it is stored, and who has a delivery of it. */
export interface PartialRouting {
  readonly tenant: string
  /** When it was stored, ms since the epoch. */
  readonly at: number
  readonly parts: Array<StoredPart>
  readonly sent: Set<string>
  /** Who has none yet, and what is known from an attempt that was made from the event. */
  readonly failed: Map<string, Progress>
}

/** Of an event whose plan is not stored. */
export const nothingRouted = ({ at, tenant }: Pick<Event, "at" | "tenant">): PartialRouting => ({
  tenant,
  at,
  parts: [],
  sent: new Set(),
  failed: new Map()
})

/** What is known of the delivery to one endpoint. */
export interface Located {
  /** It is in its queue, has gone on from there, or has ended. */
  readonly isSent: boolean
  /** Where an attempt from the event did not succeed. */
  readonly failed: Progress | undefined
}

/** Endpoints up to which the history is read for each of them, and beyond which as a whole. */
const maxSingleLookups = 8
/** From which age on there may be much between an event and the end of the history, ms. */
const oldEventAgeMs = 5 * 60_000

type Target = readonly [tenant: string, id: string]

/** Events whose routing was begun, by their names. */
type Events = ReadonlyMap<string, PartialRouting>

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
  const time = Math.max(0, (isPlan && first !== null ? first.time.getTime() : at) - maxNodeSkewMs)
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
      seeStream(
        {
          stream: names.backlog(partition),
          subjects:
            those.length <= maxSingleLookups
              ? those.map(([tenant, id]) => names.subjects.backlog(partition, tenant, id))
              : [names.subjects.backlogOf(partition)],
          fromTime: beginning.time,
          headersOnly: true
        },
        ({ headers, subject }) => {
          if (headers?.get("petrel-round") !== firstRound) return false
          const id = subject.slice(subject.lastIndexOf(".") + 1)
          events.get(eventNameIn((name) => headers.get(name)))?.sent.add(id)
          return false
        }
      ),
    { concurrency: 4, discard: true }
  )

  const seqs = new Set([...events.keys()].map((name) => readEventName(name)?.eventSeq))
  const of = wanted.size <= maxSingleLookups ? [...wanted.values()] : [["*", "*"] as const]
  yield* seeStream(
    {
      stream: names.history,
      subjects: of.flatMap(([tenant, id]) => [
        ...successKinds.map((kind) => names.subjects.fact(tenant, id, "ok", kind)),
        // Not what an audit has missed, and told of.
        names.subjects.fact(tenant, id, "failure", "attempt-failed"),
        names.subjects.fact(tenant, id, "failure", "dead-lettered")
      ]),
      ...beginning.history
    },
    (message) => {
      const text = message.string()
      // To read each as a fact takes longer than all else about it.
      if (!seqs.has(eventSeqIn(text))) return false
      const fact = Option.getOrUndefined(decodeFact(text))
      const { eventAt, eventSeq, round } = fact ?? {}
      if (fact === undefined || eventSeq === undefined || eventAt === undefined) return false
      const begun = events.get(eventName({ eventSeq, eventAt }))
      if (begun === undefined || round !== firstRound) return false
      const failed = progressFrom(fact, names.events)
      if (failed === undefined) begun.sent.add(fact.endpoint)
      else begun.failed.set(fact.endpoint, failed)
      return false
    }
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
        scanQueue(names.deliveries(partition), names.subjects.schedulesOf(partition)),
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

const eventSeqPattern = /"eventSeq":(\d+)/

/** The sequence of the event that a fact is about, by its text: a text in it would have its quotes escaped. */
const eventSeqIn = (text: string): number | undefined => {
  const seq = eventSeqPattern.exec(text)?.[1]
  return seq === undefined ? undefined : Number(seq)
}

/** Deliveries that are looked for together. */
interface Search {
  readonly events: Map<string, PartialRouting>
  readonly done: Effect.Effect<void, BrokerError>
}

/**
 * Makes what looks what became of the delivery to one endpoint of a plan. What is asked while others
 * are looked for is looked for together after that: one by one each would read the same streams.
 */
export const makeLocator = Effect.fnUntraced(function* (partitions: number) {
  const context = yield* Effect.context<Broker>()
  const one = yield* Semaphore.make(1)
  let next: Search | undefined

  const begin = Effect.gen(function* () {
    const events = new Map<string, PartialRouting>()
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
    const begun = search.events.get(name) ?? nothingRouted(event)
    begun.parts.push({ plan: { ...plan, endpoints: [planned] }, seq })
    search.events.set(name, begun)
    yield* search.done
    const found: Located = {
      isSent: begun.sent.has(planned.id),
      failed: begun.failed.get(planned.id)
    }
    return found
  })
})

/** Events that were handed out before and are looked for together. */
interface Review {
  readonly wanted: Map<string, EventIdentity>
  readonly done: Effect.Effect<Events, BrokerError>
}

const review = Effect.fnUntraced(function* (
  wanted: ReadonlyArray<EventIdentity>,
  partitions: number
) {
  const events = new Map<string, PartialRouting>()
  for (const [name, parts] of yield* findPlans(wanted))
    parts.forEach(({ eventAt, plan, seq, tenant }) => {
      const begun = events.get(name) ?? nothingRouted({ tenant, at: eventAt })
      begun.parts[plan.part] = { plan, seq }
      events.set(name, begun)
    })
  yield* findSent(events, partitions)
  return events
})

/** Makes what finds what is known of an event. What is asked meanwhile is looked for together after that. */
const makeReview = Effect.fnUntraced(function* (partitions: number) {
  const context = yield* Effect.context<Broker>()
  const one = yield* Semaphore.make(1)
  let next: Review | undefined

  const begin = Effect.gen(function* () {
    const wanted = new Map<string, EventIdentity>()
    const find = Effect.suspend(() => {
      if (next === mine) next = undefined
      return review([...wanted.values()], partitions)
    })
    const done = yield* Effect.cached(Effect.provideContext(one.withPermit(find), context))
    const mine: Review = { wanted, done }
    return mine
  })

  return Effect.fnUntraced(function* (event: EventIdentity) {
    const mine = next ?? (yield* begin)
    next = mine
    const name = eventName(event)
    mine.wanted.set(name, event)
    return (yield* mine.done).get(name)
  })
})

/**
 * Up to which event the broker may have handed out any, as far as the streams say; those after it
 * are new. What its consumer says may be too little: it is written down late, and a broker that
 * crashed, or another leader of a cluster, does not know the last of it. But what came of what was
 * handed out is told in the history.
 */
const readHandedOut = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const { config, delivered } = yield* ask("look at the router", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  const { state } = yield* ask("look at the events", () => jsm.streams.info(names.events))
  const last = state.last_seq
  if (delivered.stream_seq >= last) return { last, deliveryCount: last }
  const query = { seq: delivered.stream_seq + 1, next_by_subj: ">" }
  const first = yield* ask("read the first event that nobody has", () =>
    jsm.streams.getMessage(names.events, query)
  )
  if (first === null) return { last, deliveryCount: last }
  const prefetch = config.max_ack_pending ?? -1
  const planned = yield* newestPlanned(
    first.time.getTime(),
    prefetch > 0 ? prefetch : Number.POSITIVE_INFINITY
  )
  return { last, deliveryCount: Math.max(delivered.stream_seq, planned) }
})

/**
 * What is known of events that somebody has begun to route. Nothing is read of those that surely
 * nobody has: what is handed out for the first time, beyond all that was handed out before. That is
 * found out once for each connection. All others are looked for when they come: they are those that
 * were in hand when somebody died or gave them back, and not all since the oldest of these.
 *
 * A broker that was restarted has forgotten the ids of deliveries that are no longer in their
 * stream, hence the looking; what is stored after it the broker recognises by its `Nats-Msg-Id`.
 */
export const makePartialRoutings = Effect.fnUntraced(function* (partitions: number) {
  const context = yield* Effect.context<Broker>()
  const { onReconnect } = yield* Broker
  const clock = yield* Clock.Clock
  const one = yield* Semaphore.make(1)
  // What is old may take long to find, and nobody else is to wait for that.
  const lookForYoung = yield* makeReview(partitions)
  const lookForOld = yield* makeReview(partitions)
  let upTo: number | undefined
  /** The highest that was handed out here. */
  let seen = 0
  let epoch = 0
  const stop = onReconnect(() => {
    epoch++
    upTo = undefined
  })
  yield* Effect.addFinalizer(() => Effect.sync(stop))

  const read = Effect.gen(function* () {
    const begunIn = epoch
    const { deliveryCount, last } = yield* readHandedOut
    // The stream may have lost its end, and give the sequences again.
    if (epoch === begunIn) upTo = Math.min(last, Math.max(deliveryCount, seen))
  }).pipe(Effect.provideContext(context))
  const known = Effect.suspend(() => (upTo === undefined ? read : Effect.void))
  const ready = Effect.suspend(() => (upTo === undefined ? one.withPermit(known) : Effect.void))

  const isNew = ({ eventSeq }: EventIdentity, redelivered: boolean) => {
    if (redelivered || upTo === undefined || eventSeq <= upTo) return false
    // Should it come again as if for the first time, the broker has forgotten that it came before.
    upTo = eventSeq
    seen = eventSeq
    return true
  }

  return {
    /** True where it is known, without asking, that nobody has begun an event. */
    isNew,
    /** Makes sure that it is known what was handed out. */
    ready,
    /** What is known of an event that was handed out; undefined where it has no plan. */
    of: (event: EventIdentity, redelivered: boolean) =>
      Effect.flatMap(ready, () => {
        if (isNew(event, redelivered)) return Effect.succeed(undefined)
        const age = clock.currentTimeMillisUnsafe() - event.eventAt
        return age > oldEventAgeMs ? lookForOld(event) : lookForYoung(event)
      })
  }
})
