import { Effect, HashMap, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { consumerNotFound } from "../../broker/broker-error.ts"
import { headerOf } from "../../broker/headers.ts"
import { seeRest, storedAt } from "../../broker/scan.ts"
import { firstRound } from "../../domain/delivery.ts"
import {
  contentOf,
  type EventIdentity,
  eventId,
  idOfTenant,
  parseEventSubject
} from "../../domain/event.ts"
import { givenId } from "../../domain/intake.ts"
import { present } from "../../domain/record.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { type DeliveryLife, viewOf } from "../../history/fold/delivery.ts"
import { attemptsOf, endOf } from "../../history/fold/round.ts"
import { makePicker, type StoredFact } from "../../history/read.ts"
import type { LoggedDeliveries } from "../../projection/delivery-log.ts"
import { livesOf } from "../../projection/logged-round.ts"
import { askLog, searchBeyondLog } from "../history/history-readings.ts"
import { EventNotKept } from "../refusals.ts"

/** An event of which nothing is recorded yet. */
interface UnroutedEvent extends EventIdentity {
  readonly id: string
  readonly type: string
}

/**
 * Returns the first event that is not routed, or of which something is still to be recorded: its
 * sequence in EVENTS. Undefined where the routers' consumer is missing.
 */
export const firstUnrouted = Effect.gen(function* () {
  const { consumerInfo, names } = yield* Broker
  const { ack_floor } = yield* consumerInfo(
    "look at the router",
    names.events,
    names.routerConsumer
  )
  return ack_floor.stream_seq + 1
}).pipe(
  Effect.catchIf(
    ({ code }) => code === consumerNotFound,
    () => Effect.undefined
  )
)

/**
 * Finds an event among those that are not routed: this reads them. Returns undefined if it is none of
 * them.
 *
 * @param event its id, with or without the tenant in front.
 * @param from the first sequence that is not routed.
 */
export const findUnrouted = Effect.fnUntraced(function* (
  tenant: string,
  event: string,
  from: number
) {
  const { names } = yield* Broker
  const full = idOfTenant(tenant, event)
  let found: UnroutedEvent | undefined
  const rest = {
    stream: names.events,
    subject: names.subjects.event(tenant, ">"),
    fromSeq: from,
    headersOnly: true
  }
  yield* seeRest(rest, (message) => {
    const { headers, seq, subject } = message
    const at = storedAt(message)
    const id = eventId(givenId(headerOf(headers)), seq, at)
    if (id !== event && id !== full) return false
    const parsed = parseEventSubject(subject, names)
    const type = "type" in parsed ? parsed.type : ""
    found = { id, type, eventSeq: seq, eventAt: at }
    return true
  })
  return found
})

/** What became of an event at an endpoint: its last round. */
const EventDelivery = Schema.Struct({
  delivery: Schema.String.annotateKey({ description: "`<event id>.<endpoint id>`" }),
  endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  round: Schema.String.annotateKey({
    description: "Which round of the delivery: `0` is the first."
  }),
  state: Schema.Literals([
    "open",
    "delivered",
    "dead-lettered",
    "discarded",
    "skipped"
  ]).annotateKey({
    description: "`skipped`: the endpoint wanted the event and was sent none, for the reason."
  }),
  attempts: Schema.Int.annotateKey({ description: "Recorded requests." }),
  reason: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why it was skipped, or ended without success."
  })
})
type EventDelivery = typeof EventDelivery.Type

/** An event, and what became of it at each endpoint. Times in ms since the epoch. */
export const EventView = Schema.Struct({
  id: Schema.String.annotateKey({ description: "The id of the event." }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  type: Schema.String.annotateKey({ description: "The type of the event." }),
  seq: Schema.Int,
  at: Timestamp.annotateKey({ description: "When the broker stored it." }),
  bytes: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Absent if the event itself is no longer kept."
  }),
  contentType: Schema.optionalKey(Schema.String).annotateKey({
    description: "The media type of the body."
  }),
  routed: Schema.Boolean.annotateKey({
    description:
      "False while nothing is recorded of it: it is stored, and where it goes is not known yet."
  }),
  deliveries: Schema.Array(EventDelivery)
})
export type EventView = typeof EventView.Type

/** An event's body, and of what type it is. */
interface EventBody {
  readonly body: Uint8Array
  readonly contentType: string
}

/** Reads the message of an event; undefined if it is not kept any more. */
const messageOf = Effect.fnUntraced(function* (tenant: string, seq: number, at: number) {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage("read an event", names.events, { seq })
  // A truncated stream assigns a sequence again, perhaps to another tenant's event.
  if (message === null || message.time.getTime() !== at) return undefined
  const parsed = parseEventSubject(message.subject, names)
  return parsed.tenant === tenant ? message : undefined
})

/** What is known of an event, and its deliveries. */
interface KnownEvent extends UnroutedEvent {
  /** Absent if nothing is recorded of it. */
  readonly isRouted?: true
  readonly lives: ReadonlyArray<DeliveryLife>
  /** Endpoints that a plan left out. They may have been sent the event later. */
  readonly skipped: ReadonlyArray<{ readonly endpoint: string; readonly reason: string }>
}

/** Returns an event as the log has it; undefined where it has nothing of it. */
const loggedEvent = (found: LoggedDeliveries): KnownEvent | undefined => {
  const last = found.rounds.at(-1) ?? found.unwanted.at(-1)
  if (last === undefined) return undefined
  const { eventAt, eventSeq, type } = last
  // A truncated stream assigns a sequence again.
  const rounds = found.rounds.filter(
    (round) => round.eventSeq === eventSeq && round.eventAt === eventAt
  )
  const skipped = rounds.flatMap(({ endpoint, reason, state }) =>
    state === "skipped" ? [{ endpoint, reason: reason ?? "" }] : []
  )
  return {
    ...{ id: last.event, type: type ?? "", eventAt, eventSeq, skipped },
    isRouted: true,
    lives: livesOf(rounds)
  }
}

/**
 * Finds an event in the history, which has no index by event: this reads the tenant's facts. Returns
 * undefined if none of them is about it.
 *
 * @param after excludes facts up to this sequence of the history.
 */
const findInHistory = Effect.fnUntraced(function* (tenant: string, event: string, after = 0) {
  const { names } = yield* Broker
  const { pick, warnOfSkipped } = makePicker({ tenant, event })
  const facts: Array<StoredFact> = []
  const rest = {
    stream: names.history,
    subject: names.subjects.fact(tenant, "*", "*", "*"),
    fromSeq: after + 1
  }
  yield* seeRest(rest, (message) => {
    const stored = pick(message.string(), message.seq)
    if (stored !== undefined) facts.push(stored)
    return false
  })
  yield* warnOfSkipped
  const last = facts.findLast(({ fact }) => fact.eventSeq !== undefined)?.fact
  const { eventAt, eventSeq } = last ?? {}
  if (eventAt === undefined || eventSeq === undefined) return undefined
  const own = facts.map(({ fact }) => fact).filter((fact) => fact.eventSeq === eventSeq)
  return {
    id: own.find((fact) => fact.event !== undefined)?.event ?? event,
    type: own.find((fact) => fact.type !== undefined)?.type ?? "",
    eventAt,
    eventSeq,
    isRouted: true,
    lives: [...HashMap.values(viewOf(own).deliveries)],
    skipped: own.flatMap(({ plan }) =>
      (plan?.skipped ?? []).map(({ id, reason }) => ({ endpoint: id, reason }))
    )
  } satisfies KnownEvent
})

/** Finds an event, also one that is stored and not routed. Fails with EventNotKept. */
const lookUp = Effect.fnUntraced(function* (tenant: string, event: string) {
  const search = Effect.fnUntraced(function* (after?: number) {
    // Before what is recorded is looked at: it may be routed meanwhile.
    const from = yield* firstUnrouted
    const recorded: KnownEvent | undefined = yield* findInHistory(tenant, event, after)
    if (recorded !== undefined || from === undefined) return recorded
    const found = yield* findUnrouted(tenant, event, from)
    return found && ({ ...found, lives: [], skipped: [] } satisfies KnownEvent as KnownEvent)
  })
  const found = yield* askLog({ tenant, event })
  const logged = found === undefined ? undefined : loggedEvent(found)
  if (logged !== undefined) return logged
  return yield* searchBeyondLog(
    found,
    search,
    (reach) => new EventNotKept({ tenant, event, ...present({ reach }) })
  )
})

const deliveryOf = (
  event: string,
  { endpoint, rounds }: DeliveryLife
): ReadonlyArray<EventDelivery> => {
  const round = rounds.at(-1)
  if (round === undefined) return []
  const end = endOf(round.state)
  const reason = round.end?.reason
  return [
    {
      delivery: `${event}.${endpoint}`,
      endpoint,
      round: round.round,
      state: end === "none" ? "open" : end,
      attempts: attemptsOf(round.state),
      ...(reason === undefined ? {} : { reason })
    }
  ]
}

const skippedOf = (
  event: string,
  { endpoint, reason }: KnownEvent["skipped"][number]
): EventDelivery => ({
  delivery: `${event}.${endpoint}`,
  endpoint,
  round: firstRound,
  state: "skipped",
  attempts: 0,
  reason
})

/**
 * Shows an event. Asks a projection if one runs and is not far behind, else reads the history. Fails with EventNotKept if that tells of none of this id.
 */
export const showEvent = Effect.fnUntraced(function* (tenant: string, event: string) {
  const {
    eventAt,
    eventSeq,
    id,
    isRouted = false,
    lives,
    skipped,
    type
  } = yield* lookUp(tenant, event)
  const message = yield* messageOf(tenant, eventSeq, eventAt)
  const content = message === undefined ? {} : contentOf(headerOf(message.header))
  const { contentType } = content
  return {
    id,
    tenant,
    type,
    seq: eventSeq,
    at: eventAt,
    ...(message === undefined ? {} : { bytes: message.data.length }),
    ...(contentType === undefined ? {} : { contentType }),
    routed: isRouted,
    deliveries: [
      ...lives.flatMap((life) => deliveryOf(id, life)),
      ...skipped.flatMap((one) =>
        lives.some(({ endpoint }) => endpoint === one.endpoint) ? [] : [skippedOf(id, one)]
      )
    ].toSorted((a, b) => (a.endpoint < b.endpoint ? -1 : 1))
  } satisfies EventView
})

/** Reads an event's body. Fails with EventNotKept if it is not there (any more). */
export const readEventBody = Effect.fnUntraced(function* (tenant: string, event: string) {
  const { eventAt, eventSeq } = yield* lookUp(tenant, event)
  const message = yield* messageOf(tenant, eventSeq, eventAt)
  if (message === undefined) return yield* new EventNotKept({ tenant, event })
  const { contentType = "application/json" } = contentOf(headerOf(message.header))
  return { body: message.data, contentType } satisfies EventBody
})
