import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { consumerNotFound } from "../../broker/broker-error.ts"
import { headerOf } from "../../broker/header-lookup.ts"
import { seeStream, storedAt } from "../../broker/scan.ts"
import { type EventIdentity, eventId, idOfTenant, parseEventSubject } from "../../domain/event.ts"

/** An event of which nothing is recorded yet. */
export interface UnroutedEvent extends EventIdentity {
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
 * Finds an event among those that are not routed: this reads their headers. Returns undefined if it
 * is none of them.
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
  const range = {
    stream: names.events,
    subjects: [names.subjects.event(tenant, ">")],
    fromSeq: from,
    headersOnly: true
  }
  yield* seeStream(range, (message) => {
    const { seq, subject } = message
    const at = storedAt(message)
    const id = eventId(headerOf(message.headers)("nats-msg-id"), seq, at)
    if (id !== event && id !== full) return false
    const parsed = parseEventSubject(subject, names)
    const type = "type" in parsed ? parsed.type : ""
    found = { id, type, eventSeq: seq, eventAt: at }
    return true
  })
  return found
})
