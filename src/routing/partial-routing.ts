import { Clock, Effect, Option, Semaphore } from "effect"
import { Broker } from "../broker/broker.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import { maxNodeSkewMs } from "../domain/clock-bounds.ts"
import type { Addressee } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Event, EventIdentity } from "../domain/event.ts"
import { eventName, readEventName } from "../domain/event.ts"
import type { Planned } from "../domain/fact.ts"
import { decodeFact } from "../history/delivery-facts.ts"
import type { Sighting } from "../history/locate.ts"
import { locate } from "../history/locate.ts"
import type { IsWantedEvent } from "../history/plans.ts"
import { findPlans } from "../history/plans.ts"
import { makeGivenBack } from "./given-back.ts"
import { readLastDelivered } from "./last-delivered.ts"
import type { StoredPart } from "./plan.ts"
import { makeJointLookup } from "./plan-store.ts"
import type { PartialRouting } from "./routing-progress.ts"
import { locatedIn, noteSighting, nothingRouted } from "./routing-progress.ts"

/** Age above which much history may lie between an event and the end of the stream, ms. */
const oldEventAgeMs = 5 * 60_000

/** Events whose routing has begun, by event name. */
type Events = ReadonlyMap<string, PartialRouting>

/**
 * Returns where in the history outcomes of the plans may begin: at the first plan's sequence, if
 * that fact is still there. After a truncation the history reuses that sequence for another fact;
 * reading then begins at the time of the oldest event.
 */
const beginningOf = Effect.fnUntraced(function* (events: Events) {
  const { names, readMessage } = yield* Broker
  let seq = Number.POSITIVE_INFINITY
  let at = Number.POSITIVE_INFINITY
  for (const begun of events.values()) {
    at = Math.min(at, begun.at)
    for (const part of begun.parts) seq = Math.min(seq, part.seq)
  }
  const first = yield* readMessage("read a plan", names.history, { seq })
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
 * Locates existing deliveries of the events: in the queue, then in the backlog, then in the
 * history. This order follows the way a delivery moves, so that none is missed.
 */
const findSent = Effect.fnUntraced(function* (events: Events, partitions: number) {
  const { names } = yield* Broker
  const within = { partitions }
  const wanted = new Map<string, Addressee>()
  for (const { parts, tenant } of events.values())
    for (const { plan } of parts)
      for (const { id } of plan.endpoints)
        wanted.set(endpointKey(tenant, id), { tenant, endpoint: id })
  if (wanted.size === 0) return
  const seqs = new Set([...events.keys()].map((name) => readEventName(name)?.eventSeq))
  const note = (sighting: Sighting) => {
    const begun = events.get(sighting.event)
    if (begun !== undefined) noteSighting(begun, sighting, names.events)
    return false
  }
  const beginning = yield* beginningOf(events)
  yield* locate(
    {
      within,
      endpoints: [...wanted.values()],
      places: ["queue", "backlog", "history"],
      backlogSince: beginning.time,
      historySince: beginning.history,
      isWanted: (eventSeq) => seqs.has(eventSeq)
    },
    note
  )
  // What failed directly may wait as a broker schedule, which may have fired since the queues were
  // read.
  const endpoints: Array<Addressee> = []
  for (const { failed, sent, tenant } of events.values())
    for (const id of failed.keys()) if (!sent.has(id)) endpoints.push({ tenant, endpoint: id })
  if (endpoints.length > 0)
    yield* locate({ within, endpoints, places: ["schedules", "queue"] }, note)
})

/** A delivery to locate: to one endpoint of a stored part of its event's plan. */
interface Unlocated {
  readonly event: Pick<Event, "at" | "seq" | "tenant">
  readonly planned: Planned
  readonly part: StoredPart
}

const nameOf = ({ at, seq }: Unlocated["event"]): string =>
  eventName({ eventSeq: seq, eventAt: at })

/** Makes the locator of a delivery to one endpoint of a plan. */
export const makeLocator = Effect.fnUntraced(function* (partitions: number) {
  const lookup = yield* makeJointLookup(
    Effect.fnUntraced(function* (unlocated: ReadonlyArray<Unlocated>) {
      const events = new Map<string, PartialRouting>()
      for (const { event, part, planned } of unlocated) {
        const begun = events.get(nameOf(event)) ?? nothingRouted(event)
        begun.parts.push({ plan: { ...part.plan, endpoints: [planned] }, seq: part.seq })
        events.set(nameOf(event), begun)
      }
      yield* findSent(events, partitions)
      return events
    })
  )
  return (event: Unlocated["event"], planned: Planned, part: StoredPart) =>
    Effect.map(lookup({ event, planned, part }), (events) =>
      locatedIn(events.get(nameOf(event)), planned.id)
    )
})

/** Makes the lookup of an event's routing. */
const makeReview = Effect.fnUntraced(function* (partitions: number) {
  const lookup = yield* makeJointLookup(
    Effect.fnUntraced(function* (wanted: ReadonlyArray<EventIdentity>) {
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
  )
  return (event: EventIdentity) =>
    Effect.map(lookup(event), (events) => events.get(eventName(event)))
})

/**
 * Finds out which events have partial routing. Nothing is read for an event that is certainly new:
 * its first delivery by the broker, with a sequence above all that were delivered before. That
 * position is read once per connection. All other events are looked up when they arrive: they are
 * the ones that were in flight when a worker died or gave them back, not all events since the
 * oldest of them.
 *
 * The lookup is needed because a restarted broker has forgotten the message ids of deliveries that
 * are no longer in their stream. What is stored after the restart the broker recognises by its
 * `Nats-Msg-Id`.
 *
 * @param consumer of the events.
 * @param isRouted whether it gives an event to be routed. (Default: all)
 */
export const makePartialRoutings = Effect.fnUntraced(function* (
  partitions: number,
  consumer: string,
  isRouted?: IsWantedEvent
) {
  const context = yield* Effect.context<Broker>()
  const { onReconnect } = yield* Broker
  const clock = yield* Clock.Clock
  const one = yield* Semaphore.make(1)
  // Old events may take long to look up; recent events do not wait for them.
  const lookForYoung = yield* makeReview(partitions)
  const lookForOld = yield* makeReview(partitions)
  let upTo: number | undefined
  /** Highest sequence of a new event that this worker has received. */
  let seen = 0
  const givenBack = yield* makeGivenBack(consumer)
  let epoch = 0
  /** The consumer's count of deliveries at the last one to this worker. */
  let consumerSeq = 0
  const forget = () => {
    epoch++
    upTo = undefined
    givenBack.forget()
  }
  const stop = onReconnect(() => {
    forget()
    consumerSeq = 0
  })
  yield* Effect.addFinalizer(() => Effect.sync(stop))

  const read = Effect.gen(function* () {
    const begunIn = epoch
    const { consumed, last, lastDelivered } = yield* readLastDelivered(consumer, isRouted)
    if (epoch !== begunIn) return
    // The stream may have been truncated, and then reuses sequences.
    upTo = Math.min(last, Math.max(lastDelivered, seen))
    if (consumerSeq === 0) consumerSeq = consumed
  }).pipe(Effect.provideContext(context))
  const known = Effect.suspend(() => (upTo === undefined ? read : Effect.void))
  const ready = Effect.suspend(() => (upTo === undefined ? one.withPermit(known) : Effect.void))

  const isNew = (event: EventIdentity, deliveryCount: number) => {
    const { eventSeq } = event
    if (deliveryCount > 1) return givenBack.take(event, deliveryCount)
    if (upTo === undefined || eventSeq <= upTo) return false
    // If the event arrives again as a first delivery, the broker has forgotten the earlier one.
    upTo = eventSeq
    seen = eventSeq
    return true
  }

  return {
    /**
     * Notes a delivery by the consumer. One that was made again counts from the beginning, and
     * delivers what others have routed.
     */
    delivered: (message: Pick<StreamMessage, "consumerSeq">) => {
      if (message.consumerSeq <= consumerSeq) forget()
      consumerSeq = message.consumerSeq
    },
    /**
     * Returns true where it is known, without I/O, that routing of the event has not begun.
     *
     * @param deliveryCount how often the broker has delivered it, this time included.
     */
    isNew,
    /** Called with a new event that goes back to the broker before its routing has begun. */
    givesBack: givenBack.add,
    /** Reads anew what is known: some of it may be wrong. */
    forget,
    /** Makes sure that the position of delivered events is known. */
    ready,
    /** Returns the partial routing of an event; undefined where it has no plan. */
    of: (event: EventIdentity, deliveryCount: number) =>
      Effect.flatMap(ready, () => {
        if (isNew(event, deliveryCount)) return Effect.succeed(undefined)
        const age = clock.currentTimeMillisUnsafe() - event.eventAt
        return age > oldEventAgeMs ? lookForOld(event) : lookForYoung(event)
      })
  }
})
