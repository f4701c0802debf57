import { randomUUID } from "node:crypto"
import { Effect, Result, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { headerOf } from "../../broker/headers.ts"
import { type HeaderList, isTooLarge, type PubAck, PublishError } from "../../broker/publication.ts"
import { contentOf } from "../../domain/event.ts"
import { type ApiChannel, channelHeader } from "../../domain/origin.ts"
import { Invalid, type Problem } from "../../domain/problem.ts"
import { bytesText } from "../../text/quantities.ts"
import { EventConflict, EventNotStored } from "../refusals.ts"
import { type CheckedEvent, checkEvent, type NewEvent } from "./new-event.ts"

/** An event that the broker has. */
export const PublishedEvent = Schema.Struct({
  id: Schema.String,
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  type: Schema.String.annotateKey({ description: "The type of the event." }),
  seq: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Absent if it is stored in a stream that the events are sourced from."
  }),
  duplicate: Schema.Boolean.annotateKey({
    description: "True if the broker had an event of this id already: nothing new was published."
  }),
  unsent: Schema.Array(Schema.String).annotateKey({
    description: "Headers that are stored with the event and not forwarded to receivers."
  })
})
export type PublishedEvent = typeof PublishedEvent.Type

const idLength = 24

/** Makes an id for an event that has none. Node keeps random numbers for UUIDs in store. */
const makeId = (): string => `evt_${randomUUID().replaceAll("-", "").slice(-idLength)}`

/**
 * JetStream error code: the stream cannot store the message. For streams created by `init`: it is
 * full.
 */
const notStored = 10077

/** Returns what the publisher can do about an event that was not stored, or may not have been. */
const explainNotStored = Effect.fnUntraced(function* (
  error: PublishError,
  { id }: CheckedEvent,
  bytes: number
) {
  const { names, server, streamInfo } = yield* Broker
  if (error.reason === "timeout")
    return new EventNotStored({
      reason: "unknown",
      message: `the broker did not say within 5 s that it has the event, and it may have it: publish it again with \`id\` ${id}, which cannot store it twice`
    })
  if (error.reason === "no-stream")
    return new EventNotStored({
      reason: "no-stream",
      message: `no stream on this broker takes ${error.subject}: run \`petrel init\``
    })
  if (error.code === notStored)
    return new EventNotStored({
      reason: "full",
      message: `${names.events} does not store the event (${error.detail}): publish it again with \`id\` ${id} when there is space; \`petrel status\` says when`
    })
  const most = server().max_payload ?? Number.POSITIVE_INFINITY
  if (!isTooLarge(error) && bytes < most)
    return new EventNotStored({ reason: "failed", message: error.message })
  const limit = yield* streamInfo(`look at ${names.events}`, names.events).pipe(
    Effect.map(({ config }) => config.max_msg_size ?? most),
    Effect.orElseSucceed(() => most)
  )
  return new EventNotStored({
    reason: "too-large",
    message: `the event's ${bytesText(bytes)} and its headers are more than the ${bytesText(limit)} that ${names.events} takes: send a link to the data instead, or raise the broker's max_payload (${bytesText(most)}), then run \`petrel init\``
  })
})

/**
 * Publishes one event, as any NATS client can.
 *
 * @param body sent to receivers byte for byte.
 */
export const publishEvent = Effect.fnUntraced(function* (event: NewEvent, body: Uint8Array) {
  const checked = checkEvent(event, yield* Effect.sync(makeId))
  if (Result.isFailure(checked)) return yield* new Invalid({ problems: checked.failure })
  const { headers, tenant, type } = checked.success
  const { names, publish } = yield* Broker
  const ack = yield* publish(`${names.eventRoot}.${tenant}.${type}`, body, headers).pipe(
    Effect.catch((error) =>
      Effect.flatMap(explainNotStored(error, checked.success, body.length), Effect.fail)
    )
  )
  return publishedEvent(checked.success, ack, names.events)
})

const publishedEvent = (
  { id, tenant, type, unsent }: CheckedEvent,
  { duplicate, seq, stream }: PubAck,
  events: string
): PublishedEvent => ({
  ...{ id, tenant, type, duplicate, unsent },
  ...(stream === events ? { seq } : {})
})

/** Stored events that are compared at the same time. */
const comparedAtOnce = 16

/** An event to be published, with its body. */
export interface EventToPublish {
  readonly event: NewEvent
  readonly body: Uint8Array
}

/** What became of one event: it was stored, or refused, or it is not known to be stored. */
export type Publication =
  | PublishedEvent
  | EventConflict
  | EventNotStored
  | { readonly _tag: "Refused"; readonly problems: ReadonlyArray<Problem> }

type Sent = PubAck | PublishError

/** Stores all events at the same time. Undefined for one that is not to be stored. */
const sendAll = (
  events: ReadonlyArray<CheckedEvent | undefined>,
  items: ReadonlyArray<EventToPublish>,
  channel: ApiChannel
) =>
  Effect.flatMap(Broker, ({ names, send }) =>
    Effect.callback<ReadonlyArray<Sent | undefined>>((resume) => {
      const results: Array<Sent | undefined> = events.map(() => undefined)
      let left = 1
      const settled = () => {
        left--
        if (left === 0) resume(Effect.succeed(results))
      }
      for (const [index, event] of events.entries()) {
        const body = items[index]?.body
        if (event === undefined || body === undefined) continue
        left++
        const headers: HeaderList = [...event.headers, [channelHeader, channel]]
        send(names.subjects.event(event.tenant, event.type), body, headers, (result) => {
          results[index] = result
          settled()
        })
      }
      settled()
    })
  )

/**
 * Returns true if a stored event is the one that was to be stored: the broker compares ids only. One
 * that is gone already counts as the same.
 */
const isSame = Effect.fnUntraced(function* (
  { headers, tenant, type }: CheckedEvent,
  body: Uint8Array,
  { seq, stream }: PubAck
) {
  const { names, readMessage } = yield* Broker
  const stored = yield* readMessage("compare with the event of the same id", stream, { seq })
  if (stored === null) return true
  const given = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]))
  return (
    stored.subject === names.subjects.event(tenant, type) &&
    Buffer.from(stored.data).equals(body) &&
    contentOf(headerOf(stored.header)).contentType ===
      contentOf((name) => given.get(name)).contentType
  )
})

const publicationOf = Effect.fnUntraced(function* (
  event: CheckedEvent,
  body: Uint8Array,
  sent: Sent
): Effect.fn.Return<Publication, BrokerError, Broker> {
  if (sent instanceof PublishError) return yield* explainNotStored(sent, event, body.length)
  if (sent.duplicate && !(yield* isSame(event, body, sent)))
    return new EventConflict({ id: event.id })
  const { names } = yield* Broker
  return publishedEvent(event, sent, names.events)
})

/**
 * Publishes events at the same time. Returns what became of each, in their order. An event whose id
 * is known already is compared with the stored one: equal ones are duplicates, others conflicts.
 *
 * @param channel how they came.
 */
export const publishEvents = Effect.fnUntraced(function* (
  items: ReadonlyArray<EventToPublish>,
  channel: ApiChannel
) {
  const checked = yield* Effect.sync(() => items.map(({ event }) => checkEvent(event, makeId())))
  const sent = yield* sendAll(
    checked.map((one) => (Result.isSuccess(one) ? one.success : undefined)),
    items,
    channel
  )
  return yield* Effect.forEach(
    checked,
    (one, index): Effect.Effect<Publication, BrokerError, Broker> => {
      if (Result.isFailure(one)) return Effect.succeed({ _tag: "Refused", problems: one.failure })
      const result = sent[index]
      const body = items[index]?.body
      return result === undefined || body === undefined
        ? Effect.die(new Error("an event was neither stored nor refused"))
        : publicationOf(one.success, body, result)
    },
    { concurrency: comparedAtOnce }
  )
})
