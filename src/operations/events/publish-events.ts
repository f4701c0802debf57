import { randomUUID } from "node:crypto"
import { Effect, Result, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { headerOf } from "../../broker/header-lookup.ts"
import type { HeaderList, PubAck } from "../../broker/publisher.ts"
import { PublishError } from "../../broker/publisher.ts"
import { type ApiChannel, channelHeader } from "../../domain/channel.ts"
import { contentOf } from "../../domain/event.ts"
import type { Problem } from "../../domain/problem.ts"
import type { CheckedEvent, NewEvent } from "./new-event.ts"
import { checkEvent } from "./new-event.ts"
import type { EventNotStored, PublishedEvent } from "./publish-event.ts"
import { explainNotStored } from "./publish-event.ts"

/** Stored events that are compared at the same time. */
const comparedAtOnce = 16

/** An event to be published, with its body. */
export interface EventToPublish {
  readonly event: NewEvent
  readonly body: Uint8Array
}

/** The broker has another event of this id. */
export class EventConflict extends Schema.TaggedError<EventConflict>()("EventConflict", {
  id: Schema.String
}) {
  override get message() {
    return `there is another event of the id ${this.id} already, with another type or other bytes: give each event an id of its own`
  }
}

/** What became of one event: it was stored, or refused, or it is not known to be stored. */
export type Publication =
  | PublishedEvent
  | EventConflict
  | EventNotStored
  | { readonly _tag: "Refused"; readonly problems: ReadonlyArray<Problem> }

const idLength = 24

/** Makes an id for an event that has none. Node keeps random numbers for UUIDs in store. */
const makeId = (): string => `evt_${randomUUID().replaceAll("-", "").slice(-idLength)}`

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
  const { id, tenant, type, unsent } = event
  if (sent.duplicate && !(yield* isSame(event, body, sent))) return new EventConflict({ id })
  const { names } = yield* Broker
  return {
    id,
    tenant,
    type,
    ...(sent.stream === names.events ? { seq: sent.seq } : {}),
    duplicate: sent.duplicate,
    unsent
  }
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
