import { Effect, HashMap, Schema, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { headerOf } from "../../broker/header-lookup.ts"
import { contentOf, parseEventSubject } from "../../domain/event.ts"
import { attemptsOf, endOf } from "../../history/fold/round.ts"
import { viewOf } from "../../history/fold/view.ts"
import { readFacts } from "../../history/read.ts"
import { EventNotKept } from "../replays/replay-events.ts"

/** What became of an event at an endpoint: its last round. */
export const EventDelivery = Schema.Struct({
  /** `<event id>.<endpoint id>` */
  delivery: Schema.String,
  endpoint: Schema.String,
  round: Schema.String,
  state: Schema.Literals(["open", "delivered", "dead-lettered", "discarded"]),
  attempts: Schema.Int
})
export type EventDelivery = typeof EventDelivery.Type

/** An event, and what became of it at each endpoint. Times in ms since the epoch. */
export const EventView = Schema.Struct({
  id: Schema.String,
  tenant: Schema.String,
  type: Schema.String,
  seq: Schema.Int,
  /** When the broker stored it. */
  at: Schema.Number,
  /** Absent if the event itself is not kept any more. */
  bytes: Schema.optionalKey(Schema.Int),
  contentType: Schema.optionalKey(Schema.String),
  deliveries: Schema.Array(EventDelivery)
})
export type EventView = typeof EventView.Type

/** An event's body, and of what type it is. */
export interface EventBody {
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

/**
 * Finds the facts about an event. The history has no index by event: this reads the tenant's facts.
 */
const lookUp = Effect.fnUntraced(function* (tenant: string, event: string) {
  const facts = yield* Stream.runCollect(readFacts({ tenant, event }))
  const last = facts.findLast(({ fact }) => fact.eventSeq !== undefined)?.fact
  const { eventAt, eventSeq } = last ?? {}
  if (eventAt === undefined || eventSeq === undefined)
    return yield* new EventNotKept({ tenant, event })
  const own = facts.map(({ fact }) => fact).filter((fact) => fact.eventSeq === eventSeq)
  return { eventAt, eventSeq, facts: own }
})

/** Shows an event. Fails with EventNotKept if the history tells of none of this id. */
export const showEvent = Effect.fnUntraced(function* (tenant: string, event: string) {
  const { eventAt, eventSeq, facts } = yield* lookUp(tenant, event)
  const message = yield* messageOf(tenant, eventSeq, eventAt)
  const lives = [...HashMap.values(viewOf(facts).deliveries)]
  const content = message === undefined ? {} : contentOf(headerOf(message.header))
  const { contentType } = content
  return {
    id: facts.find((fact) => fact.event !== undefined)?.event ?? event,
    tenant,
    type: facts.find((fact) => fact.type !== undefined)?.type ?? "",
    seq: eventSeq,
    at: eventAt,
    ...(message === undefined ? {} : { bytes: message.data.length }),
    ...(contentType === undefined ? {} : { contentType }),
    deliveries: lives
      .toSorted((a, b) => (a.endpoint < b.endpoint ? -1 : 1))
      .flatMap(({ endpoint, rounds }): ReadonlyArray<EventDelivery> => {
        const round = rounds.at(-1)
        if (round === undefined) return []
        const end = endOf(round.state)
        return [
          {
            delivery: `${event}.${endpoint}`,
            endpoint,
            round: round.round,
            state: end === "none" ? "open" : end,
            attempts: attemptsOf(round.state)
          }
        ]
      })
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
