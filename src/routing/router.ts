import { Cause, Effect, Option } from "effect"
import { Broker } from "../broker/broker.ts"
import { consumerNotFound } from "../broker/broker-error.ts"
import type { InFlight, InFlightWork } from "../broker/in-flight.ts"
import { makeInFlight } from "../broker/in-flight.ts"
import type { Prefetched } from "../broker/prefetch-window.ts"
import { PrefetchWindow } from "../broker/prefetch-window.ts"
import { PublishError } from "../broker/publication.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import type { EventIdentity } from "../domain/event.ts"
import { subjectWithId } from "../domain/event.ts"
import type { GetHeader } from "../domain/header-names.ts"
import { Directory } from "../endpoints/directory.ts"
import type { WorkerMetrics } from "../metrics/worker-metrics.ts"
import { Metrics } from "../metrics/worker-metrics.ts"
import { elapsedMs } from "../time/elapsed.ts"
import { EndpointsNotCurrent } from "./directory-gate.ts"
import type { EventWay } from "./event-way.ts"
import type { FanOutCallbacks, FanOutParts, Routed } from "./fan-out.ts"
import { makeFanOut, maxConcurrentStores } from "./fan-out.ts"
import { HeldEvents } from "./held-events.ts"
import { isLarge, makeLargeEvents, RouterStops, TooManyHeld } from "./large-events.ts"
import { makePartialRoutings } from "./partial-routing.ts"
import { isSole, nextPart, partSize } from "./plan.ts"
import { PlanCommit } from "./plan-commit.ts"
import { makeQueueBrake } from "./queue-brake.ts"
import type { QueueDepth } from "./queue-depth.ts"
import { makeQueueDepth } from "./queue-depth.ts"
import { RoutingRecovery } from "./routing-recovery.ts"
import type { RoutingOptions, RoutingServices } from "./routing-services.ts"
import { eventOf } from "./routing-services.ts"

/**
 * Maximum deliveries of prefetched events. More would wait for places in their endpoints' lanes,
 * and go through the queue at twice the cost (bench/DIARY.md).
 */
const maxPrefetched = 256
/**
 * Maximum deliveries of the first events, some 8 events at a time. The code of a new router is cold:
 * what it takes waits longer than with another one that runs.
 */
const prefetchedAtFirst = 64
/**
 * Number of deliveries that an event is assumed to have until the first events have been routed.
 */
const defaultParts = 8
/**
 * Pause before an event that could not be routed is redelivered, ms. Doubles with each delivery.
 */
const retryPauseMs = 5_000
/**
 * How often a pause doubles at most. Deliveries count that had other causes, and once the broker
 * stores again an event should not wait for long, so what failed comes again after 20 s at most.
 * Where a tenant has too many events here, nothing of them waits for anything else, and while they
 * wait they count against what the consumer may have unacknowledged. What goes another way is soon
 * routed there.
 */
const maxDoublings = { failed: 2, tooMany: 2, passes: 4, undecided: 2 }
/** Pause before an event whose routing has not begun is redelivered, ms. */
const giveBackPauseMs = 1_000
/** Pause before it is looked again whether it is known which events to route, ms. */
const unknownPauseMs = 250

export interface RouterOptions extends RoutingOptions {
  /** Maximum bytes of event bodies that the router holds. */
  readonly prefetchBytes: number
  /** False while this worker's clock may be wrong: plans carry deadlines. */
  readonly isClockTrusted: () => boolean
}

/** Callbacks of one event on the fast path. */
interface EventCallbacks extends Pick<FanOutCallbacks, "onFallback" | "onSlow"> {
  /** Called for an event that is routed in turns. */
  readonly onLarge: () => void
  /** Called with the number of deliveries of the event. */
  readonly goesTo: (deliveries: number) => void
}

/** What one router is made of. */
export interface RouterParts {
  readonly services: RoutingServices
  /** Which events it takes. */
  readonly way: EventWay
  readonly prefetch: PrefetchWindow
  readonly inFlight: InFlight<Broker>
  readonly partial: Effect.Success<ReturnType<typeof makePartialRoutings>>
  readonly recovery: RoutingRecovery
  readonly large: Effect.Success<ReturnType<typeof makeLargeEvents>>
  /** Events whose deliveries wait to be stored, of tenants that would fill the window with them. */
  readonly held: Pick<HeldEvents, "isFull" | "size">
  readonly metrics: Pick<WorkerMetrics, "returnedEvent" | "returnedLargeEvent">
  readonly queueBrake: Effect.Success<ReturnType<typeof makeQueueBrake>>
  readonly queueDepth: QueueDepth
  readonly fanOut: FanOutParts
}

/** Makes what a router is made of. */
export const makeParts = Effect.fnUntraced(function* (
  options: RouterOptions,
  services: RoutingServices,
  way: EventWay
) {
  const { ackWait, partitions } = options.layout
  const directory = yield* Directory
  const metrics = yield* Metrics
  const hasOtherTenants = () => directory.tenantCount() > 1
  const held = new HeldEvents(options.prefetchBytes)
  const prefetch = new PrefetchWindow({
    deliveries: maxPrefetched,
    atFirst: prefetchedAtFirst,
    bytes: options.prefetchBytes,
    usualParts: defaultParts,
    hold: (tenant, bytes) => (hasOtherTenants() ? held.hold(tenant, bytes) : undefined)
  })
  yield* prefetch.keepAlive(ackWait)
  const fanOut = yield* makeFanOut({
    ...{ partitions, bytes: options.directBytes, owned: options.owned, store: services.store },
    ...{ hasOtherTenants, mayBeRedelivered: (began) => prefetch.mayBeRedelivered(began) }
  })
  const queueDepth = yield* makeQueueDepth(partitions)
  const large = yield* makeLargeEvents(queueDepth, options.prefetchBytes)
  const parts: RouterParts = {
    services,
    way,
    prefetch,
    fanOut,
    partial: yield* makePartialRoutings(partitions, way.consumer, way.routes),
    recovery: yield* RoutingRecovery.make(services, fanOut),
    inFlight: yield* makeInFlight<Broker>(),
    ...{ large, held, metrics },
    queueBrake: yield* makeQueueBrake(partitions, () => prefetch.deliveryBytes),
    queueDepth
  }
  return parts
})

/** One router: which way an event goes, the fast path or recovery. */
export class Router {
  readonly #options: RouterOptions
  readonly #parts: RouterParts
  readonly #services: RoutingServices
  /** Storage time of each event in flight, by sequence: a truncated stream reuses sequences. */
  readonly #inFlight = new Map<number, number>()

  constructor(options: RouterOptions, parts: RouterParts) {
    this.#options = options
    this.#parts = parts
    this.#services = parts.services
  }

  /** Pulls events until the worker stops, and finishes those that were begun. */
  readonly run = Effect.gen({ self: this }, function* () {
    const { inFlight, prefetch } = this.#parts
    const { names, pull } = this.#services.broker
    yield* pull({
      name: this.#parts.way.name,
      stream: names.events,
      consumer: this.#parts.way.consumer,
      kind: "events",
      stopping: this.#options.stopping,
      take: (message, header) => this.#take(message, header),
      tooLarge: (wanted) => prefetch.tooLarge(wanted),
      remake: Effect.provideService(this.#remake, Broker, this.#services.broker),
      demand: Effect.provideService(this.#capacity, Broker, this.#services.broker)
    })
    this.#parts.large.close()
    yield* inFlight.none
  })

  readonly #remake = Effect.suspend(() => this.#parts.way.remake)

  /** How much may be pulled now; undefined for nothing. */
  readonly #capacity = Effect.gen({ self: this }, function* () {
    const { partial, prefetch, queueBrake, queueDepth, way } = this.#parts
    const { broker, endpoints } = this.#services
    if (!way.isKnown()) {
      yield* Effect.sleep(unknownPauseMs)
      return
    }
    const known = yield* partial.ready.pipe(
      Effect.tapError(({ code, message }) =>
        code === consumerNotFound
          ? this.#remake
          : Effect.logWarning("cannot read which event was last delivered to a router", {
              why: message
            })
      ),
      Effect.option
    )
    if (Option.isNone(known)) {
      yield* Effect.sleep("1 second")
      return
    }
    const budget = yield* queueBrake.budget
    if (budget === undefined) return
    if (way.leavesQueuesShallow()) yield* queueDepth.shallow
    if (!this.#options.isClockTrusted()) {
      yield* Effect.sleep("1 second")
      return
    }
    yield* prefetch.hasCapacity
    if (!(yield* endpoints.look)) return
    return prefetch.capacityWithin(budget, broker.largestMessage())
  })

  #take(message: StreamMessage, header: GetHeader): void {
    const { held, inFlight, metrics, partial, prefetch, recovery, way } = this.#parts
    const { queueBrake, queueDepth } = this.#parts
    const { data, deliveryCount, seq, storedAt } = message
    partial.delivered(message)
    // The event is in flight here already, and may be in an attempt. Acknowledging one copy settles
    // both.
    if (this.#inFlight.get(seq) === storedAt) return
    const { subject } = this.#services.routes.of(message.subject)
    // The filters of a bypass do not take all subjects that no event should have.
    const passing = "problem" in subject ? undefined : subject.tenant
    const decision = way.decide({ tenant: passing, seq, at: storedAt })
    if (decision !== "route") {
      if (decision === "finished") message.ack()
      else this.#comeLater(message, decision)
      return
    }
    const { tenant = "" } = subject
    this.#inFlight.set(seq, storedAt)
    const prefetched = prefetch.take(message, tenant)
    const parts = prefetch.usualParts
    const count = (deliveries: number) => {
      queueBrake.routed(data.length, deliveries)
      if (way.leavesQueuesShallow()) queueDepth.routed(deliveries)
    }
    count(parts)
    const ended = (finished: boolean) => {
      // Cancelled by a stop: the next router continues from what was stored.
      if (!finished) message.nak(giveBackPauseMs)
      if (this.#inFlight.get(seq) === storedAt) this.#inFlight.delete(seq)
      prefetch.release(prefetched)
    }
    const guarded = (routed: Effect.Effect<void, unknown, Broker>) =>
      redeliverOnFailure(message, routed)
    const event = { eventSeq: seq, eventAt: storedAt }
    const large = (isNew: boolean) => guarded(this.#routeLarge(message, header, prefetched, isNew))
    const isNew = partial.isNew(event, deliveryCount)
    if (held.isFull(tenant, data.length) && prefetch.isHalfOf(tenant)) {
      metrics.returnedEvent()
      if (isNew) partial.givesBack(event, deliveryCount)
      inFlight.run(guarded(Effect.fail(new TooManyHeld())), ended)
      return
    }
    if (!isNew) {
      const known = this.#lookUp(event, deliveryCount)
      const routed = Effect.flatMap(known, (known) => recovery.route(message, header, { known }))
      inFlight.run(this.#isLarge(message) ? large(false) : guarded(routed), ended)
      return
    }
    const work = inFlight.begin(ended, (defect) => guarded(Effect.die(defect)))
    this.#route(message, header, work, {
      onLarge: () => work.continueInFiber(large(true)),
      goesTo: (deliveries) => {
        prefetch.weigh(prefetched, Math.min(deliveries, maxConcurrentStores))
        count(deliveries - parts)
      },
      onFallback: (progress) =>
        work.continueInFiber(guarded(recovery.route(message, header, progress))),
      onSlow: (remaining) => prefetch.exclude(prefetched, remaining)
    })
  }

  /** Has an event come again that is not routed here now, or never. */
  #comeLater(message: StreamMessage, decision: "passes" | "undecided"): void {
    const { partial } = this.#parts
    const { deliveryCount, seq, storedAt } = message
    const event = { eventSeq: seq, eventAt: storedAt }
    if (decision === "undecided" && partial.isNew(event, deliveryCount))
      partial.givesBack(event, deliveryCount)
    message.nak(giveBackPauseMs * 2 ** Math.min(deliveryCount - 1, maxDoublings[decision]))
  }

  /** Finds what was stored of an event: after the wait for the endpoints, so that it is current. */
  #lookUp(event: EventIdentity, deliveryCount: number) {
    const { pass } = this.#services.endpoints
    return Effect.andThen(pass, this.#parts.partial.of(event, deliveryCount))
  }

  #isLarge({ subject }: StreamMessage): boolean {
    return isLarge(this.#services.routes.of(subject).all.length)
  }

  /**
   * Routes an event with many deliveries in turns, or leaves it to the broker for a while if its
   * tenant has as many of them here as it may have.
   *
   * @param isNew whether routing of the event had not begun when it came.
   */
  #routeLarge(
    message: StreamMessage,
    header: GetHeader,
    prefetched: Prefetched,
    isNew: boolean
  ): Effect.Effect<void, unknown, Broker> {
    const { large, metrics, partial, prefetch, queueBrake, recovery } = this.#parts
    const { broker, routes, safeRepublishMs } = this.#services
    const { data, deliveryCount, seq, storedAt } = message
    const event = { eventSeq: seq, eventAt: storedAt }
    const came = elapsedMs()
    return Effect.suspend((): Effect.Effect<void, unknown, Broker> => {
      const { all, subject } = routes.of(message.subject)
      const held = large.hold(subject.tenant ?? "", data.length, (deliveries) => {
        prefetch.restate(prefetched, deliveries)
        queueBrake.routed(data.length, deliveries)
      })
      if (held === undefined) {
        metrics.returnedLargeEvent()
        if (isNew) partial.givesBack(event, deliveryCount)
        return Effect.fail(new TooManyHeld())
      }
      prefetch.weigh(prefetched, maxConcurrentStores)
      prefetch.exclude(prefetched, 0)
      const first = Math.min(all.length, partSize(broker.largestMessage()))
      const progress = Effect.suspend(() =>
        isNew && elapsedMs() - came < safeRepublishMs / 2
          ? Effect.succeed({ known: undefined, began: came })
          : Effect.map(this.#lookUp(event, Number.POSITIVE_INFINITY), (known) => ({ known }))
      )
      return held.turn(first).pipe(
        Effect.andThen(progress),
        Effect.flatMap((progress) => recovery.route(message, header, progress, held)),
        Effect.ensuring(Effect.sync(() => held.leave()))
      )
    })
  }

  /**
   * The fast path, without fibers: for an event whose routing has not begun and whose plan has one
   * part. Anything else falls back to routing-recovery.ts.
   */
  #route(
    message: StreamMessage,
    header: GetHeader,
    work: InFlightWork<Broker>,
    callbacks: EventCallbacks
  ): void {
    work.step(() => {
      const { broker, clock, deliveries, dropped, endpoints, origins } = this.#services
      const { plans, routes } = this.#services
      const began = elapsedMs()
      const fromStart = () => callbacks.onFallback({ known: undefined, began })
      if (!endpoints.isOpen()) return fromStart()
      const route = routes.of(message.subject)
      if (isLarge(route.all.length)) return callbacks.onLarge()
      const subject = subjectWithId(route.subject, header)
      if ("problem" in subject || !deliveries.isHealthy()) return fromStart()
      const event = eventOf(message, header, subject, route.forwards, dropped)
      const { keys, plan } = nextPart(event, route, 0, "", partSize(broker.largestMessage()))
      if (!plan.last) return fromStart()
      callbacks.goesTo(plan.endpoints.length)
      const planCommit = new PlanCommit(plans, event, plan, clock.currentTimeMillisUnsafe(), began)
      const routed = { message, planCommit, keys, began }
      origins.tryClaim(event, header, (isFirst) =>
        work.step(() => (isFirst ? this.#commit(routed, work, callbacks) : fromStart()))
      )
    })
  }

  /** Stores the plan, or leaves it to the only delivery's outcome; then delivers. */
  #commit(routed: Routed, work: InFlightWork<Broker>, callbacks: EventCallbacks): void {
    const { facts, reached } = this.#services
    const { began, planCommit } = routed
    if (isSole(planCommit.plan) && facts.isTaking()) {
      this.#deliver(routed, work, callbacks)
      return
    }
    planCommit.commitThen(() =>
      work.step(() => {
        // The same plan and time, so that recovery recognises the plan if it was stored.
        if (planCommit.isUnsure)
          return callbacks.onFallback({ known: undefined, began, asked: planCommit })
        reached("plan-stored")
        this.#deliver(routed, work, callbacks)
      })
    )
  }

  #deliver(routed: Routed, work: InFlightWork<Broker>, callbacks: EventCallbacks): void {
    const { onFallback, onSlow } = callbacks
    const onComplete = () => {
      this.#services.reached("event-routed")
      routed.message.ack()
      work.done()
    }
    this.#parts.fanOut(routed, work, { onComplete, onFallback, onSlow })
  }
}

/**
 * Redelivers an event that could not be routed. The next try searches for what was stored of it.
 */
const redeliverOnFailure = <E, R>(message: StreamMessage, routed: Effect.Effect<void, E, R>) => {
  const comeBack = (doublings: number) =>
    Effect.sync(() => {
      const times = Math.min(message.deliveryCount - 1, doublings)
      message.nak(retryPauseMs * 2 ** times)
    })
  const giveBack = Effect.sync(() => {
    // Without a pause it could come back here while the worker stops.
    message.nak(giveBackPauseMs)
  })
  return routed.pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) => {
        const why = Cause.squash(cause)
        // The directory gate has logged this, once for all events that wait.
        if (why instanceof EndpointsNotCurrent || why instanceof RouterStops) return giveBack
        if (why instanceof TooManyHeld) return comeBack(maxDoublings.tooMany)
        if (why instanceof PublishError) return comeBack(maxDoublings.failed)
        return Effect.andThen(
          Effect.logError("an event could not be routed; it is tried again", cause, {
            seq: message.seq
          }),
          comeBack(maxDoublings.failed)
        )
      }
    )
  )
}
