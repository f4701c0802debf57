import { Clock, Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { FailpointName } from "../broker/failpoint.ts"
import { Failpoint } from "../broker/failpoint.ts"
import type { Gate } from "../broker/gate.ts"
import { makeGate } from "../broker/gate.ts"
import type { InFlightWork } from "../broker/in-flight.ts"
import type { Layout } from "../broker/installed.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import type { Event, EventSubject, GetHeader } from "../domain/event.ts"
import { contentOf, eventId, subjectWithId } from "../domain/event.ts"
import { Directory } from "../endpoints/directory.ts"
import { Facts } from "../history/facts.ts"
import { elapsedMs } from "../time/elapsed.ts"
import { makeDirectoryGate } from "./directory-gate.ts"
import type { FanOutCallbacks, OwnedPartitions, Routed } from "./fan-out.ts"
import { makeFanOut } from "./fan-out.ts"
import type { Origins } from "./origins.ts"
import { makeOrigins } from "./origins.ts"
import { isSole, nextPart, partSize } from "./plan.ts"
import { PlanCommit } from "./plan-commit.ts"
import type { PlanStore } from "./plan-store.ts"
import { makePlanStore } from "./plan-store.ts"
import { SubjectRoutes } from "./subject-routes.ts"

export interface EventRoutingOptions {
  readonly worker: string
  readonly layout: Layout
  /** Maximum bytes of event bodies in direct delivery. */
  readonly directBytes: number
  readonly owned: OwnedPartitions
  readonly stopping: () => boolean
}

/** Callbacks of one event's fast path. */
export interface EventCallbacks extends Pick<FanOutCallbacks, "onFallback" | "onSlow"> {
  /** Called with the number of deliveries of the event. */
  readonly goesTo: (deliveries: number) => void
}

/** What both paths of routing need. */
export interface RoutingServices {
  readonly options: EventRoutingOptions
  readonly broker: Broker["Service"]
  readonly clock: Clock.Clock
  readonly facts: Facts["Service"]
  readonly reached: (step: FailpointName) => void
  readonly routes: SubjectRoutes
  readonly plans: PlanStore
  readonly origins: Origins
  /** Passes while the endpoints are current. */
  readonly endpoints: ReturnType<typeof makeDirectoryGate>
  /** Guards the storing of deliveries. */
  readonly deliveries: Gate
  /**
   * Above this age the broker may have forgotten what it has stored: the recovery path then
   * searches for it, ms.
   */
  readonly safeRepublishMs: number
}

/** Acquires what both paths of routing need. */
export const makeRoutingServices = Effect.fnUntraced(function* (options: EventRoutingOptions) {
  const broker = yield* Broker
  const directory = yield* Directory
  const { isSourced, moveDedupe } = options.layout
  const safeRepublishMs = moveDedupe / 2
  const services: RoutingServices = {
    options,
    broker,
    clock: yield* Clock.Clock,
    facts: yield* Facts,
    reached: yield* Failpoint,
    routes: new SubjectRoutes(directory, broker.names),
    plans: yield* makePlanStore(options.worker, safeRepublishMs),
    origins: yield* makeOrigins(isSourced, safeRepublishMs),
    endpoints: makeDirectoryGate(directory, {
      limit: safeRepublishMs / 2,
      stopping: options.stopping
    }),
    deliveries: makeGate(
      "the broker takes no deliveries: events wait until it does",
      "the broker takes deliveries again"
    ),
    safeRepublishMs
  }
  return services
})

/** Returns the event in a message. */
export const eventOf = (
  message: StreamMessage,
  header: GetHeader,
  { tenant, type }: Exclude<EventSubject, { readonly problem: string }>
): Event => ({
  seq: message.seq,
  tenant,
  type,
  id: eventId(header("nats-msg-id"), message.seq, message.storedAt),
  at: message.storedAt,
  content: contentOf(header)
})

/**
 * The fast path of routing, without fibers: for an event whose routing has not begun and whose plan
 * has one part. Anything else falls back to routing-recovery.ts.
 */
export class EventRouting {
  readonly #services: RoutingServices
  readonly #fanOut: Effect.Success<ReturnType<typeof makeFanOut>>

  static readonly make = Effect.fnUntraced(function* (services: RoutingServices) {
    const { directBytes, layout, owned } = services.options
    const { safeRepublishMs } = services
    const fanOut = yield* makeFanOut({
      ...{ partitions: layout.partitions, safeRepublishMs, bytes: directBytes, owned }
    })
    return new EventRouting(services, fanOut)
  })

  private constructor(
    services: RoutingServices,
    fanOut: Effect.Success<ReturnType<typeof makeFanOut>>
  ) {
    this.#services = services
    this.#fanOut = fanOut
  }

  route(
    message: StreamMessage,
    header: GetHeader,
    work: InFlightWork<Broker>,
    callbacks: EventCallbacks
  ): void {
    work.step(() => {
      const { broker, clock, deliveries, endpoints, origins, plans, routes } = this.#services
      const began = elapsedMs()
      const fromStart = () => callbacks.onFallback({ known: undefined, began })
      if (!endpoints.isOpen()) return fromStart()
      const route = routes.of(message.subject)
      const subject = subjectWithId(route.subject, header)
      if ("problem" in subject || !deliveries.isHealthy()) return fromStart()
      const event = eventOf(message, header, subject)
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
    this.#fanOut(routed, work, { onComplete, onFallback, onSlow })
  }
}
