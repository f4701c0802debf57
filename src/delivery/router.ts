import type { JsMsg } from "@nats-io/jetstream"
import { Cause, Clock, Effect, Exit, FiberSet } from "effect"
import { Broker } from "../broker/connection.ts"
import { makeGate } from "../broker/gate.ts"
import type { Layout } from "../broker/topology.ts"
import type { Delivery } from "../domain/delivery.ts"
import { deliveryHeaders, firstRound, untried } from "../domain/delivery.ts"
import type { Event } from "../domain/event.ts"
import { contentOf, eventId, parseEventSubject } from "../domain/event.ts"
import type { Plan, Planned } from "../domain/fact.ts"
import { partitionOf } from "../domain/names.ts"
import { nobody } from "../domain/token.ts"
import { Facts } from "../history/facts.ts"
import { Checkpoint } from "./checkpoint.ts"
import { Directory } from "./directory.ts"
import { InHand } from "./in-hand.ts"
import { headerOf, storedAt } from "./messages.ts"
import type { StoredPart } from "./plan.ts"
import {
  alreadySent,
  endOf,
  mayBeForgotten,
  nextPart,
  readPart,
  readUnfinished,
  routedFact
} from "./plan.ts"
import { pull } from "./pull.ts"

/** Routed at the same time: a wide fan-out leaves room for the others. */
const capacity = { messages: 64, bytes: 32 * 1024 * 1024 }
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
  const broker = yield* Broker
  const { ask, js, names, onReconnect } = broker
  const inHand = new InHand(capacity)
  yield* inHand.keepAlive(options.layout.ackWait)
  const route = yield* makeRoute(options)
  const fibers = yield* FiberSet.make<boolean>()
  const run = yield* FiberSet.runtime(fibers)()
  let unfinished: Map<number, Array<StoredPart>> | undefined
  const forget = onReconnect(() => {
    unfinished = undefined
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))

  const take = (message: JsMsg) => {
    inHand.take(message)
    run(route(message, unfinished?.get(message.seq) ?? [])).addObserver((exit) => {
      inHand.release(message)
      unfinished?.delete(message.seq)
      if (Exit.isSuccess(exit) && !exit.value) unfinished = undefined
    })
  }
  yield* pull({
    name: "the router",
    consumer: ask("open the router's consumer", () =>
      js.consumers.get(names.events, names.routerConsumer)
    ),
    stopping: options.stopping,
    take,
    room: Effect.gen(function* () {
      unfinished ??= yield* readUnfinished.pipe(
        Effect.provideService(Broker, broker),
        Effect.tapError((error) => Effect.logWarning("cannot read plans", { why: error.message })),
        Effect.orElseSucceed(() => undefined)
      )
      if (unfinished === undefined) {
        yield* Effect.sleep("1 second")
        return 0
      }
      yield* inHand.roomy
      return inHand.room
    })
  })
  yield* FiberSet.awaitEmpty(fibers)
})

const makeRoute = Effect.fnUntraced(function* ({ layout, worker }: RouterOptions) {
  const context = yield* Effect.context<Broker>()
  const { names, publisher } = yield* Broker
  const directory = yield* Directory
  const facts = yield* Facts
  const reached = yield* Checkpoint
  const deliveries = makeGate(
    "the broker takes no deliveries: events wait until it does",
    "the broker takes deliveries again"
  )

  /** Beyond it the broker may have forgotten what it has stored already: the plan is read again. */
  const patience = layout.moveDedupe / 2

  const send = (event: Event, body: Uint8Array, planned: Planned) => {
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
    return deliveries
      .within(patience, publisher.publish(subject, body, deliveryHeaders(delivery, messageId)))
      .pipe(Effect.tap(() => Effect.sync(() => reached("delivery-stored"))))
  }

  /** The part that counts: one stored earlier goes before one made now. */
  const store = Effect.fnUntraced(function* (event: Event, plan: Plan) {
    const at = yield* Clock.currentTimeMillis
    const ack = yield* facts.appendWithin(
      patience,
      routedFact(event, plan, at, worker),
      `routed.${event.seq}.${plan.part}`
    )
    if (!ack.duplicate) return { plan, at } satisfies StoredPart
    const stored = yield* readPart(ack.seq)
    return stored._tag === "Some"
      ? stored.value
      : yield* Effect.die(
          new Error(
            `fact ${ack.seq} should hold part ${plan.part} of the plan of event ${event.seq}`
          )
        )
  })

  const follow = Effect.fnUntraced(function* (event: Event, body: Uint8Array, stored: StoredPart) {
    const sent = (yield* mayBeForgotten(stored, layout.moveDedupe))
      ? yield* alreadySent(event, stored, layout.partitions)
      : new Set<string>()
    const missing = stored.plan.endpoints.filter(({ id }) => !sent.has(id))
    yield* Effect.forEach(missing, (planned) => send(event, body, planned), {
      concurrency: fanOut,
      discard: true
    })
  })

  const routeEvent = Effect.fnUntraced(function* (
    event: Event,
    body: Uint8Array,
    known: ReadonlyArray<StoredPart>
  ) {
    const matching = directory.match(event.tenant, event.type)
    let after = ""
    for (let part = 0; ; part++) {
      const stored = known[part] ?? (yield* store(event, nextPart(event, matching, part, after)))
      reached("plan-stored")
      yield* follow(event, body, stored)
      if (stored.plan.last) return
      after = endOf(stored.plan)
    }
  })

  const unroutable = Effect.fnUntraced(function* (
    message: JsMsg,
    tenant: string | undefined,
    reason: string
  ) {
    const at = yield* Clock.currentTimeMillis
    yield* Effect.logWarning("unroutable event", { subject: message.subject, reason })
    yield* facts.append(
      {
        v: 1,
        kind: "unroutable",
        at,
        tenant: tenant ?? nobody,
        endpoint: nobody,
        event: eventId(headerOf(message)("nats-msg-id"), message.seq),
        eventSeq: message.seq,
        reason,
        worker
      },
      `unroutable.${message.seq}`
    )
  })

  const routeMessage = Effect.fnUntraced(function* (
    message: JsMsg,
    known: ReadonlyArray<StoredPart>
  ) {
    const subject = parseEventSubject(message.subject, names.eventRoot)
    if ("problem" in subject) yield* unroutable(message, subject.tenant, subject.problem)
    else {
      const header = headerOf(message)
      const event: Event = {
        seq: message.seq,
        tenant: subject.tenant,
        type: subject.type,
        id: eventId(header("nats-msg-id"), message.seq),
        at: storedAt(message),
        content: contentOf(header)
      }
      yield* routeEvent(event, message.data, known)
    }
    reached("event-routed")
    message.ack()
  })

  const comeBack = (message: JsMsg) =>
    Effect.sync(() => {
      message.nak(retryPause)
      return false
    })

  /** True when the event is routed; false when it comes back, and its plan must be looked for. */
  return (message: JsMsg, known: ReadonlyArray<StoredPart>) =>
    routeMessage(message, known).pipe(
      Effect.as(true),
      // Said already, once for all events that wait.
      Effect.catchTag("PublishError", () => comeBack(message)),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) =>
          Effect.logError("an event could not be routed; it is tried again", cause, {
            seq: message.seq
          }).pipe(Effect.andThen(comeBack(message)))
      ),
      Effect.provideContext(context)
    )
})
