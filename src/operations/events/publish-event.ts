import { Effect, Random, Result, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { PublishError } from "../../broker/publisher.ts"
import { Invalid } from "../../domain/problem.ts"
import { bytesText } from "../text/bytes.ts"
import type { CheckedEvent, NewEvent } from "./new-event.ts"
import { checkEvent } from "./new-event.ts"

/** An event that the broker has. */
export const PublishedEvent = Schema.Struct({
  id: Schema.String,
  tenant: Schema.String,
  type: Schema.String,
  /** Absent if it is stored in a stream that the events are sourced from. */
  seq: Schema.optionalKey(Schema.Int),
  /** True if the broker had an event of this id already: nothing new was published. */
  duplicate: Schema.Boolean,
  /** Headers that are stored with the event and not forwarded to receivers. */
  unsent: Schema.Array(Schema.String)
})
export type PublishedEvent = typeof PublishedEvent.Type

/** The broker did not store an event, or may not have. The message says what to do. */
export class EventNotStored extends Schema.TaggedError<EventNotStored>()("EventNotStored", {
  reason: Schema.Literals(["unknown", "no-stream", "full", "too-large", "failed"]),
  message: Schema.String
}) {}

const makeId = Effect.gen(function* () {
  const digits = Effect.map(Random.nextIntBetween(0, 2 ** 32), (number) =>
    number.toString(16).padStart(8, "0")
  )
  return `evt_${yield* digits}${yield* digits}${yield* digits}`
})

const tooLarge = 10054
/**
 * JetStream error code: the stream cannot store the message. For streams created by `init`: it is
 * full.
 */
const notStored = 10077

/** Returns what the publisher can do about an event that was not stored, or may not have been. */
export const explainNotStored = Effect.fnUntraced(function* (
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
      message: `${names.events} does not store the event (${error.detail}): publish it again with \`id\` ${id} when there is room; \`petrel status\` says when`
    })
  const most = server().max_payload ?? Number.POSITIVE_INFINITY
  if (error.code !== tooLarge && bytes < most)
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
  const checked = checkEvent(event, yield* makeId)
  if (Result.isFailure(checked)) return yield* new Invalid({ problems: checked.failure })
  const { headers, id, tenant, type, unsent } = checked.success
  const { names, publish } = yield* Broker
  const { duplicate, seq, stream } = yield* publish(
    `${names.eventRoot}.${tenant}.${type}`,
    body,
    headers
  ).pipe(
    Effect.catch((error) =>
      Effect.flatMap(explainNotStored(error, checked.success, body.length), Effect.fail)
    )
  )
  return {
    id,
    tenant,
    type,
    ...(stream === names.events ? { seq } : {}),
    duplicate,
    unsent
  } satisfies PublishedEvent
})
