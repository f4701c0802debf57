import { Cause, Clock, Effect, FiberSet, Option, Schema } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { makeGate } from "../../broker/gate.ts"
import type { Layout } from "../../broker/installed.ts"
import { PublishError } from "../../broker/publisher.ts"
import type { Take } from "../../broker/puller.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { deliveryHeaders, firstRound, untried } from "../../domain/delivery.ts"
import type { Event, GetHeader } from "../../domain/event.ts"
import { contentOf, eventId, parseEventSubject } from "../../domain/event.ts"
import type { Plan, Planned } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import { nobody } from "../../domain/token.ts"
import { Facts } from "../../history/facts.ts"
import { Checkpoint } from "../checkpoint.ts"
import { Directory } from "../endpoints/directory.ts"
import { InHand } from "../lanes/in-hand.ts"
import { pull } from "../lanes/pull.ts"
import { storeOnce } from "../memory/store-once.ts"
import { headerOf } from "../messages.ts"
import type { Begun } from "./begun.ts"
import { isSent, makeBegun } from "./begun.ts"
import type { StoredPart } from "./plan.ts"
import { candidates, endOf, nextPart, readPart, routedFact } from "./plan.ts"

/** Routed at the same time: a wide fan-out leaves room for the others. */
const capacity = { messages: 128, bytes: 32 * 1024 * 1024 }
/** Deliveries of one event that await their acknowledgement at the same time. */
const fanOut = 64
/** Pause before an event that could not be routed is tried again, ms. */
const retryPause = 5_000

export interface RouterOptions {
  readonly worker: string
  readonly layout: Layout
  readonly stopping: () => boolean
}

/**
 * Turns events into deliveries until it is told to stop; then finishes those it has begun.
 *
 * For each event: the plan is stored as a `routed` fact, then one message per endpoint, then the
 * event is acknowledged. Whoever takes over in between follows the stored plan.
 */
export const runRouter = Effect.fnUntraced(function* (options: RouterOptions) {
  const { layout, stopping } = options
  const { names } = yield* Broker
  const inHand = new InHand(capacity)
  yield* inHand.keepAlive(layout.ackWait)
  const begun = yield* makeBegun(layout.partitions, layout.moveDedupe / 2)
  const route = yield* makeRoute(options)
  const fibers = yield* FiberSet.make<void>()
  const run = yield* FiberSet.runtime(fibers)<Broker>()

  const take: Take = (message, headers) => {
    inHand.take(message)
    const routed = Effect.flatMap(begun.of(message.seq, message.handedOut > 1), (known) =>
      route(message, headerOf(headers), known)
    )
    run(comeBackOnFailure(message, routed, begun.forget)).addObserver(() => inHand.release(message))
  }
  yield* pull({
    name: "the router",
    stream: names.events,
    consumer: names.routerConsumer,
    stopping,
    take,
    tooLarge: (wanted) => inHand.tooLarge(wanted),
    room: Effect.gen(function* () {
      const known = yield* begun.ready.pipe(
        Effect.tapError((error) => Effect.logWarning("cannot read plans", { why: error.message })),
        Effect.option
      )
      if (Option.isNone(known)) {
        yield* Effect.sleep("1 second")
        return
      }
      yield* Effect.raceFirst(inHand.roomy, Effect.sleep("1 second"))
      return inHand.room
    })
  })
  yield* FiberSet.awaitEmpty(fibers)
})

/** An event that could not be routed comes back; what of it was stored must be looked for then. */
const comeBackOnFailure = <E, R>(
  message: StreamMessage,
  routed: Effect.Effect<void, E, R>,
  forget: () => void
) => {
  const comeBack = Effect.sync(() => {
    forget()
    const times = Math.min(message.handedOut - 1, 6)
    message.nak(retryPause * 2 ** times)
  })
  return routed.pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        // A broker that takes nothing has been told of, once for all events that wait.
        Cause.squash(cause) instanceof PublishError
          ? comeBack
          : Effect.andThen(
              Effect.logError("an event could not be routed; it is tried again", cause, {
                seq: message.seq
              }),
              comeBack
            )
    )
  )
}

/**
 * Meanwhile somebody else may have been given the event, and have routed it longer ago than the
 * broker remembers.
 */
class RoutingTooSlow extends Schema.TaggedError<RoutingTooSlow>()("RoutingTooSlow", {
  ms: Schema.Number
}) {
  override get message() {
    return `it was not routed within ${this.ms} ms`
  }
}

const makeRoute = Effect.fnUntraced(function* ({ layout, worker }: RouterOptions) {
  const context = yield* Effect.context<Broker>()
  const clock = yield* Clock.Clock
  const { names, publisher } = yield* Broker
  const directory = yield* Directory
  const facts = yield* Facts
  const reached = yield* Checkpoint
  const deliveries = makeGate(
    "the broker takes no deliveries: events wait until it does",
    "the broker takes deliveries again"
  )

  /** Beyond it the broker may have forgotten what it has stored already: that is looked for then. */
  const patience = layout.moveDedupe / 2

  const send = (event: Event, body: Uint8Array, planned: Planned, stored: StoredPart) => {
    const delivery: Delivery = {
      tenant: event.tenant,
      endpoint: planned.id,
      event: event.id,
      eventSeq: event.seq,
      type: event.type,
      round: firstRound,
      began: event.at,
      deadline: planned.deadline,
      generation: planned.generation,
      revision: planned.revision,
      content: event.content,
      progress: untried
    }
    const partition = partitionOf(event.tenant, planned.id, layout.partitions)
    const subject = names.subjects.delivery(partition, event.tenant, planned.id)
    const messageId = `${event.seq}.${firstRound}.${planned.id}`
    const store = storeOnce(
      publisher.publish(subject, body, deliveryHeaders(delivery, messageId)),
      Effect.suspend(() =>
        Effect.provideContext(isSent(event, planned, stored, layout.partitions), context)
      )
    )
    return Effect.map(deliveries.within(patience, store), () => reached("delivery-stored"))
  }

  /** The part that counts: one stored earlier goes before one made now. */
  const store = (event: Event, plan: Plan) => {
    const fact = routedFact(event, plan, clock.currentTimeMillisUnsafe(), worker)
    const append = facts.appendWithin(patience, fact, `routed.${event.seq}.${plan.part}`)
    return Effect.flatMap(append, ({ duplicate, seq }) =>
      duplicate ? readEarlier(event, plan, seq) : Effect.succeed<StoredPart>({ plan, seq })
    )
  }

  const readEarlier = Effect.fnUntraced(function* (event: Event, plan: Plan, seq: number) {
    const stored = yield* readPart(seq)
    if (Option.isSome(stored)) return stored.value
    return yield* Effect.die(
      new Error(`fact ${seq} should hold part ${plan.part} of the plan of event ${event.seq}`)
    )
  })

  /** No generators, for this is the way of every event. */
  const routeEvent = (event: Event, body: Uint8Array, known: Begun | undefined) => {
    const began = performance.now()
    const follow = (planned: Planned, stored: StoredPart) =>
      Effect.suspend(
        (): Effect.Effect<void, PublishError | RoutingTooSlow> =>
          performance.now() - began > patience
            ? Effect.fail(new RoutingTooSlow({ ms: patience }))
            : send(event, body, planned, stored)
      )
    const all = candidates(
      directory.match(event.tenant, event.type),
      directory.unreadable(event.tenant)
    )
    const routePart = (
      part: number,
      after: string
    ): Effect.Effect<void, PublishError | RoutingTooSlow | BrokerError, Broker> => {
      const earlier = known?.parts[part]
      const planned =
        earlier === undefined
          ? store(event, nextPart(event, all, part, after))
          : Effect.succeed(earlier)
      return Effect.flatMap(planned, (stored) => {
        reached("plan-stored")
        const { endpoints, last } = stored.plan
        const missing = endpoints.filter(({ id }) => known?.sent.has(id) !== true)
        const sent = Effect.forEach(missing, (planned) => follow(planned, stored), {
          concurrency: Math.min(fanOut, missing.length),
          discard: true
        })
        return last ? sent : Effect.andThen(sent, () => routePart(part + 1, endOf(stored.plan)))
      })
    }
    return routePart(0, "")
  }

  const unroutable = Effect.fnUntraced(function* (
    message: StreamMessage,
    header: GetHeader,
    tenant: string | undefined,
    reason: string
  ) {
    const at = clock.currentTimeMillisUnsafe()
    yield* Effect.logWarning("unroutable event", { subject: message.subject, reason })
    yield* facts.append(
      {
        v: 1,
        kind: "unroutable",
        at,
        tenant: tenant ?? nobody,
        endpoint: nobody,
        event: eventId(header("nats-msg-id"), message.seq),
        eventSeq: message.seq,
        reason,
        worker
      },
      `unroutable.${message.seq}`
    )
  })

  const routeMessage = (message: StreamMessage, header: GetHeader, known: Begun | undefined) => {
    const subject = parseEventSubject(message.subject, names.eventRoot)
    if ("problem" in subject) return unroutable(message, header, subject.tenant, subject.problem)
    const event: Event = {
      seq: message.seq,
      tenant: subject.tenant,
      type: subject.type,
      id: eventId(header("nats-msg-id"), message.seq),
      at: message.storedAt,
      content: contentOf(header)
    }
    return routeEvent(event, message.data, known)
  }

  return (message: StreamMessage, header: GetHeader, known: Begun | undefined) =>
    Effect.map(routeMessage(message, header, known), () => {
      reached("event-routed")
      message.ack()
    })
})
