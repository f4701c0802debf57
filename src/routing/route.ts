import { Clock, Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { Failpoint } from "../broker/failpoint.ts"
import { makeGate } from "../broker/gate.ts"
import type { InFlightWork } from "../broker/in-flight.ts"
import type { Layout } from "../broker/installed.ts"
import { publishOnce } from "../broker/publish-once.ts"
import type { PublishError } from "../broker/publisher.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import type { Progress } from "../domain/delivery.ts"
import { untried } from "../domain/delivery.ts"
import type { Event, GetHeader } from "../domain/event.ts"
import { contentOf, eventId, eventName, subjectWithId } from "../domain/event.ts"
import type { Plan, Planned } from "../domain/fact.ts"
import { partitionOf } from "../domain/names.ts"
import { repeatOf } from "../domain/origin.ts"
import { nobody } from "../domain/token.ts"
import { Directory } from "../endpoints/directory.ts"
import { Facts } from "../history/facts.ts"
import { elapsedMs } from "../time/elapsed.ts"
import { makeDirectoryGate } from "./directory-gate.ts"
import type { FanOutCallbacks, OwnedPartitions, RoutingProgress } from "./fan-out.ts"
import { makeFanOut, maxConcurrentStores } from "./fan-out.ts"
import { makeOrigins } from "./origins.ts"
import { makeLocator, nothingRouted } from "./partial-routing.ts"
import type { Choice, StoredPart } from "./plan.ts"
import { endOf, isSole, nextPart, partSize, readPart, routedFact } from "./plan.ts"
import { PlanCommit } from "./plan-commit.ts"
import { deliveryOf, messageOf } from "./planned.ts"
import { factId, makePlans } from "./plans.ts"
import { Routes } from "./routes.ts"

export interface RouteOptions {
  readonly worker: string
  readonly layout: Layout
  /** Maximum bytes of event bodies in direct delivery. */
  readonly directBytes: number
  readonly owned: OwnedPartitions
  readonly stopping: () => boolean
}

/** Callbacks of one event's fast path. */
export interface RouteCallbacks extends Pick<FanOutCallbacks, "onFallback" | "onSlow"> {
  /** Called with the number of deliveries of the event. */
  readonly goesTo: (deliveries: number) => void
}

/**
 * Routing took longer than the broker's memory of message ids is safe. Another worker may have
 * received the event by now, and have routed it before what the broker remembers.
 */
class RoutingTooSlow extends Schema.TaggedError<RoutingTooSlow>()("RoutingTooSlow", {
  ms: Schema.Number
}) {
  override get message() {
    return `it was not routed within ${this.ms} ms`
  }
}

/**
 * Makes the two paths by which an event is routed: the fast path without fibers, and the recovery
 * path.
 */
export const makeRoute = Effect.fnUntraced(function* (options: RouteOptions) {
  const { layout, worker } = options
  const look = yield* makeLocator(layout.partitions)
  const clock = yield* Clock.Clock
  const { largestMessage, names, publish } = yield* Broker
  const directory = yield* Directory
  const routes = new Routes(directory, names)
  const facts = yield* Facts
  const reached = yield* Failpoint
  const deliveries = makeGate(
    "the broker takes no deliveries: events wait until it does",
    "the broker takes deliveries again"
  )

  /**
   * Above this age the broker may have forgotten what it has stored: the recovery path then
   * searches for it.
   */
  const safeRepublishMs = layout.moveDedupe / 2
  const plans = yield* makePlans(worker, safeRepublishMs)
  const origins = yield* makeOrigins(layout.isSourced, safeRepublishMs)
  const endpoints = makeDirectoryGate(directory, {
    limit: safeRepublishMs / 2,
    stopping: options.stopping
  })
  const sendAll = yield* makeFanOut({
    partitions: layout.partitions,
    patience: safeRepublishMs,
    bytes: options.directBytes,
    owned: options.owned
  })

  /**
   * Stores a delivery, with the progress of its direct attempt where one was made.
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
    const publication = Effect.suspend(() => {
      const delivery = deliveryOf(event, planned, progress)
      const partition = partitionOf(event.tenant, planned.id, layout.partitions)
      const { headers, subject } = messageOf(names, partition, delivery)
      return publish(subject, body, headers)
    })
    const find = Effect.map(
      Effect.suspend(() => look(event, planned, stored)),
      (found) => {
        progress = found.failed ?? progress
        return found.isSent
      }
    )
    const store = publishOnce(publication, find, { tried })
    return Effect.map(deliveries.within(safeRepublishMs, store), () => reached("delivery-stored"))
  }

  /**
   * Stores a part of the plan, and returns the part that counts: one that was stored earlier
   * prevails over one made now.
   */
  const storePart = (event: Event, { at, plan }: Pick<PlanCommit, "plan" | "at">) =>
    Effect.flatMap(plans.storeWithin(safeRepublishMs, event, plan, at), ({ duplicate, seq }) =>
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

  const routeEvent = (
    event: Event,
    choice: Choice,
    body: Uint8Array,
    routingProgress: RoutingProgress
  ) => {
    const { asked, began = elapsedMs(), known, tried } = routingProgress
    const follow = (planned: Planned, stored: StoredPart, isNew: boolean) =>
      Effect.suspend((): Effect.Effect<void, PublishError | RoutingTooSlow> => {
        if (elapsedMs() - began > safeRepublishMs)
          return Effect.fail(new RoutingTooSlow({ ms: safeRepublishMs }))
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
        plan: nextPart(event, choice, part, after, partSize(largestMessage())).plan,
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
          concurrency: Math.min(maxConcurrentStores, missing.length),
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

  /**
   * Returns the event's progress, with a plan that another worker may have stored so long ago that
   * the broker has forgotten its message id.
   */
  const asPlanned = (
    event: Event,
    routingProgress: RoutingProgress
  ): Effect.Effect<RoutingProgress> => {
    const { began = elapsedMs(), known } = routingProgress
    if (known !== undefined || elapsedMs() - began <= safeRepublishMs)
      return Effect.succeed(routingProgress)
    return Effect.map(plans.find(event), (parts) =>
      parts.length === 0 ? routingProgress : { known: { ...nothingRouted(event), parts } }
    )
  }

  /** Plans an event that goes to no endpoint, with the reason. */
  const leaveOut = (event: Event, reason: string) => {
    const plan: Plan = { part: 0, last: true, endpoints: [], skipped: [] }
    const at = clock.currentTimeMillisUnsafe()
    return facts.appendWithin(
      safeRepublishMs,
      { ...routedFact(event, plan, at, worker), reason },
      factId(event, plan)
    )
  }

  const routeRecovering = (
    message: StreamMessage,
    header: GetHeader,
    routingProgress: RoutingProgress
  ) => {
    const began = routingProgress.began ?? elapsedMs()
    const routed = Effect.suspend(() => {
      const route = routes.of(message.subject)
      const subject = subjectWithId(route.subject, header)
      if ("problem" in subject) return unroutable(message, header, subject.tenant, subject.problem)
      const event = eventOf(message, header, subject)
      return Effect.flatMap(asPlanned(event, { ...routingProgress, began }), (known) =>
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
   * The fast path, without fibers: for an event whose routing has not begun and whose plan has one
   * part.
   */
  const routeFast = (
    message: StreamMessage,
    header: GetHeader,
    work: InFlightWork<Broker>,
    { goesTo, onSlow, onFallback }: RouteCallbacks
  ) =>
    work.step(() => {
      const began = elapsedMs()
      const fromStart = () => onFallback({ known: undefined, began })
      if (!endpoints.isOpen()) return fromStart()
      const route = routes.of(message.subject)
      const subject = subjectWithId(route.subject, header)
      if ("problem" in subject || !deliveries.isHealthy()) return fromStart()
      const event = eventOf(message, header, subject)
      const { keys, plan } = nextPart(event, route, 0, "", partSize(largestMessage()))
      if (!plan.last) return fromStart()
      goesTo(plan.endpoints.length)
      const planCommit = new PlanCommit(plans, event, plan, clock.currentTimeMillisUnsafe(), began)
      const onComplete = () => {
        acknowledge(message)
        work.done()
      }
      const send = () =>
        sendAll({ message, planCommit, keys, began }, work, { onComplete, onFallback, onSlow })
      const commit = () => {
        if (isSole(plan) && facts.isTaking()) return send()
        planCommit.commitThen(() =>
          work.step(() => {
            // The same plan and time, so that recovery recognises the plan if it was stored.
            if (planCommit.isUnsure)
              return onFallback({ known: undefined, began, asked: planCommit })
            reached("plan-stored")
            send()
          })
        )
      }
      origins.tryClaim(event, header, (isFirst) =>
        work.step(() => (isFirst ? commit() : fromStart()))
      )
    })

  return { routeFast, routeRecovering, endpoints }
})
