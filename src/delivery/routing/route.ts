import { Clock, Effect, Option, Schema } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { elapsedMs } from "../../broker/elapsed.ts"
import { makeGate } from "../../broker/gate.ts"
import type { Layout } from "../../broker/installed.ts"
import type { PublishError } from "../../broker/publisher.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Progress } from "../../domain/delivery.ts"
import { untried } from "../../domain/delivery.ts"
import type { Event, GetHeader } from "../../domain/event.ts"
import { contentOf, eventId, eventName, subjectWithId } from "../../domain/event.ts"
import type { Plan, Planned } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import { repeatOf } from "../../domain/origin.ts"
import { nobody } from "../../domain/token.ts"
import { Facts } from "../../history/facts.ts"
import { Checkpoint } from "../checkpoint.ts"
import { Directory } from "../endpoints/directory.ts"
import { storeOnce } from "../memory/store-once.ts"
import type { Plain } from "../underway.ts"
import { makeLook, nothing } from "./begun.ts"
import { makeDirectoryGate } from "./directory-gate.ts"
import type { Owned, SoFar, Then } from "./fan-out.ts"
import { fanOut, makeFanOut } from "./fan-out.ts"
import { makeOrigins } from "./origins.ts"
import type { Choice, StoredPart } from "./plan.ts"
import { endOf, isSole, nextPart, partSize, readPart, routedFact } from "./plan.ts"
import { deliveryOf, messageOf } from "./planned.ts"
import { factId, makePlans } from "./plans.ts"
import { Routes } from "./routes.ts"
import { Telling } from "./telling.ts"

export interface RouteOptions {
  readonly worker: string
  readonly layout: Layout
  /** Bodies of events that are attempted at the same time, bytes. */
  readonly bytesStraight: number
  readonly owned: Owned
  readonly stopping: () => boolean
}

/** Who is told how the routing of an event goes. */
export interface Told extends Pick<Then, "otherwise" | "lasts"> {
  /** It is for so many endpoints, of which so many are dealt with at the same time. */
  readonly goesTo: (deliveries: number) => void
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

/** Makes what routes an event: by fibers, or plainly for as long as all is as usual. */
export const makeRoute = Effect.fnUntraced(function* (options: RouteOptions) {
  const { layout, worker } = options
  const look = yield* makeLook(layout.partitions)
  const clock = yield* Clock.Clock
  const { names, publisher } = yield* Broker
  const directory = yield* Directory
  const routes = new Routes(directory, names)
  const facts = yield* Facts
  const reached = yield* Checkpoint
  const deliveries = makeGate(
    "the broker takes no deliveries: events wait until it does",
    "the broker takes deliveries again"
  )

  /** Beyond it the broker may have forgotten what it has stored already: that is looked for then. */
  const patience = layout.moveDedupe / 2
  const plans = yield* makePlans(worker, patience)
  const origins = yield* makeOrigins(layout.isSourced, patience)
  const endpoints = makeDirectoryGate(directory, {
    limit: patience / 2,
    stopping: options.stopping
  })
  const sendAll = yield* makeFanOut({
    partitions: layout.partitions,
    patience,
    bytes: options.bytesStraight,
    owned: options.owned
  })

  /**
   * Stores a delivery, as it was after what was attempted from its event.
   *
   * @param tried whether somebody may have stored or attempted it.
   */
  const send = (
    event: Event,
    body: Uint8Array,
    planned: Planned,
    stored: StoredPart,
    { progress: before, tried }: { readonly progress: Progress; readonly tried: boolean }
  ) => {
    let progress = before
    const publish = Effect.suspend(() => {
      const delivery = deliveryOf(event, planned, progress)
      const partition = partitionOf(event.tenant, planned.id, layout.partitions)
      const { headers, subject } = messageOf(names, partition, delivery)
      return publisher.publish(subject, body, headers)
    })
    const find = Effect.map(
      Effect.suspend(() => look(event, planned, stored)),
      (found) => {
        progress = found.failed ?? progress
        return found.isSent
      }
    )
    const store = storeOnce(publish, find, { tried })
    return Effect.map(deliveries.within(patience, store), () => reached("delivery-stored"))
  }

  /** The part that counts: one stored earlier goes before one made now. */
  const storePart = (event: Event, { at, plan }: Pick<Telling, "plan" | "at">) =>
    Effect.flatMap(plans.storeWithin(patience, event, plan, at), ({ duplicate, seq }) =>
      duplicate
        ? Effect.map(readEarlier(event, plan, seq), (stored) => ({ stored, isNew: false }))
        : Effect.succeed({ stored: { plan, seq }, isNew: true })
    )

  const readEarlier = Effect.fnUntraced(function* (event: Event, plan: Plan, seq: number) {
    const stored = yield* readPart(seq, event)
    if (Option.isSome(stored)) return stored.value
    return yield* Effect.die(
      new Error(`fact ${seq} should hold part ${plan.part} of the plan of event ${event.seq}`)
    )
  })

  const routeEvent = (event: Event, choice: Choice, body: Uint8Array, sofar: SoFar) => {
    const { asked, began = elapsedMs(), known, tried } = sofar
    const follow = (planned: Planned, stored: StoredPart, isNew: boolean) =>
      Effect.suspend((): Effect.Effect<void, PublishError | RoutingTooSlow> => {
        if (elapsedMs() - began > patience) return Effect.fail(new RoutingTooSlow({ ms: patience }))
        return send(event, body, planned, stored, {
          progress: known?.failed.get(planned.id) ?? untried,
          tried: tried === undefined ? !isNew : tried.has(planned.id)
        })
      })
    const routePart = (
      part: number,
      after: string
    ): Effect.Effect<void, PublishError | RoutingTooSlow | BrokerError, Broker> => {
      const earlier = known?.parts[part]
      const make = () => ({
        plan: nextPart(event, choice, part, after, partSize(publisher.outbound.largest)).plan,
        at: clock.currentTimeMillisUnsafe()
      })
      const planned =
        earlier === undefined
          ? storePart(event, (part === 0 ? asked : undefined) ?? make())
          : Effect.succeed({ stored: earlier, isNew: false })
      return Effect.flatMap(planned, ({ isNew, stored }) => {
        reached("plan-stored")
        const { endpoints, last } = stored.plan
        const missing = endpoints.filter(({ id }) => known?.sent.has(id) !== true)
        const sent = Effect.forEach(missing, (planned) => follow(planned, stored, isNew), {
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
        event: eventId(header("nats-msg-id"), message.seq, message.storedAt),
        eventSeq: message.seq,
        eventAt: message.storedAt,
        reason,
        worker
      },
      `unroutable.${eventName({ eventSeq: message.seq, eventAt: message.storedAt })}`
    )
  })

  const eventOf = (
    message: StreamMessage,
    header: GetHeader,
    { tenant, type }: { readonly tenant: string; readonly type: string }
  ): Event => ({
    seq: message.seq,
    tenant,
    type,
    id: eventId(header("nats-msg-id"), message.seq, message.storedAt),
    at: message.storedAt,
    content: contentOf(header)
  })

  const acknowledge = (message: StreamMessage) => {
    reached("event-routed")
    message.ack()
  }

  /** What is known of it, with what somebody else may have planned so long ago that the broker has forgotten the id. */
  const asPlanned = (event: Event, sofar: SoFar): Effect.Effect<SoFar> => {
    const { began = elapsedMs(), known } = sofar
    if (known !== undefined || elapsedMs() - began <= patience) return Effect.succeed(sofar)
    return Effect.map(plans.find(event), (parts) =>
      parts.length === 0 ? sofar : { known: { ...nothing(event), parts } }
    )
  }

  /** An event that goes to nobody: it has a plan like all others, which says why. */
  const leaveOut = (event: Event, reason: string) => {
    const plan: Plan = { part: 0, last: true, endpoints: [], skipped: [] }
    const at = clock.currentTimeMillisUnsafe()
    return facts.appendWithin(
      patience,
      { ...routedFact(event, plan, at, worker), reason },
      factId(event, plan)
    )
  }

  const carefully = (message: StreamMessage, header: GetHeader, sofar: SoFar) => {
    const began = sofar.began ?? elapsedMs()
    const routed = Effect.suspend(() => {
      const route = routes.of(message.subject)
      const subject = subjectWithId(route.subject, header)
      if ("problem" in subject) return unroutable(message, header, subject.tenant, subject.problem)
      const event = eventOf(message, header, subject)
      return Effect.flatMap(asPlanned(event, { ...sofar, began }), (known) =>
        (known.known?.parts.length ?? 0) > 0
          ? routeEvent(event, route, message.data, known)
          : Effect.flatMap(origins.repeated(event, header, message.data), (first) =>
              first === undefined
                ? routeEvent(event, route, message.data, known)
                : leaveOut(event, repeatOf(first))
            )
      )
    })
    return endpoints.pass.pipe(
      Effect.andThen(routed),
      Effect.map(() => acknowledge(message))
    )
  }

  /**
   * The usual event, which nobody has begun and whose plan is one part, without fibers.
   */
  const plainly = (
    message: StreamMessage,
    header: GetHeader,
    work: Plain<Broker>,
    { goesTo, lasts, otherwise }: Told
  ) =>
    work.step(() => {
      const began = elapsedMs()
      const fromStart = () => otherwise({ known: undefined, began })
      if (!endpoints.isOpen()) return fromStart()
      const route = routes.of(message.subject)
      const subject = subjectWithId(route.subject, header)
      if ("problem" in subject || !deliveries.isCalm()) return fromStart()
      const event = eventOf(message, header, subject)
      const { keys, plan } = nextPart(event, route, 0, "", partSize(publisher.outbound.largest))
      if (!plan.last) return fromStart()
      goesTo(Math.min(plan.endpoints.length, fanOut))
      const telling = new Telling(plans, event, plan, clock.currentTimeMillisUnsafe(), began)
      const done = () => {
        acknowledge(message)
        work.done()
      }
      const send = () =>
        sendAll({ message, telling, keys, began }, work, { done, otherwise, lasts })
      const carryOut = () => {
        if (isSole(plan) && facts.isTaking()) return send()
        telling.ask(() =>
          work.step(() => {
            // The very same, so that it is known as this one where it has been stored.
            if (telling.isUnsure) return otherwise({ known: undefined, began, asked: telling })
            reached("plan-stored")
            send()
          })
        )
      }
      origins.tryClaim(event, header, (isFirst) =>
        work.step(() => (isFirst ? carryOut() : fromStart()))
      )
    })

  return { plainly, carefully, endpoints }
})
