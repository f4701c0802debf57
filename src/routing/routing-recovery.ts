import { Effect, Option, Schema } from "effect"
import type { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { publishOnce } from "../broker/publish-once.ts"
import type { PublishError } from "../broker/publisher.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import type { Progress } from "../domain/delivery.ts"
import { untried } from "../domain/delivery.ts"
import type { Event, GetHeader } from "../domain/event.ts"
import { eventId, eventName, subjectWithId } from "../domain/event.ts"
import type { Plan, Planned } from "../domain/fact.ts"
import { partitionOf } from "../domain/names.ts"
import { repeatOf } from "../domain/origin.ts"
import { nobody } from "../domain/token.ts"
import { elapsedMs } from "../time/elapsed.ts"
import type { RoutingProgress } from "./fan-out.ts"
import { maxConcurrentStores } from "./fan-out.ts"
import { deliveryOf, messageOf } from "./first-round.ts"
import { makeLocator, nothingRouted } from "./partial-routing.ts"
import type { EndpointChoice, StoredPart } from "./plan.ts"
import { endOf, nextPart, partSize, readPart, routedFact } from "./plan.ts"
import type { PlanCommit } from "./plan-commit.ts"
import { factId } from "./plan-store.ts"
import type { RoutingServices } from "./routing-services.ts"
import { eventOf } from "./routing-services.ts"

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

type Routing = Effect.Effect<void, PublishError | RoutingTooSlow | BrokerError, Broker>

/** One event on the recovery path. */
interface Recovered {
  readonly event: Event
  readonly choice: EndpointChoice
  readonly body: Uint8Array
  readonly progress: RoutingProgress
  /** When its routing began, ms of the monotonic clock. */
  readonly began: number
}

/**
 * The recovery path of routing: for an event that was routed in part, whose plan has several parts,
 * or for which something failed on the fast path. It looks first for what was stored earlier.
 */
export class RoutingRecovery {
  readonly #services: RoutingServices
  readonly #locate: Effect.Success<ReturnType<typeof makeLocator>>

  static readonly make = (services: RoutingServices) =>
    Effect.map(
      makeLocator(services.options.layout.partitions),
      (locate) => new RoutingRecovery(services, locate)
    )

  private constructor(
    services: RoutingServices,
    locate: Effect.Success<ReturnType<typeof makeLocator>>
  ) {
    this.#services = services
    this.#locate = locate
  }

  /** Routes an event from the state that is known, and acknowledges it. */
  route(message: StreamMessage, header: GetHeader, progress: RoutingProgress) {
    const { endpoints, reached } = this.#services
    const began = progress.began ?? elapsedMs()
    return endpoints.pass.pipe(
      Effect.andThen(Effect.suspend(() => this.#begin(message, header, { ...progress, began }))),
      Effect.andThen(
        Effect.sync(() => {
          reached("event-routed")
          message.ack()
        })
      )
    )
  }

  #begin(message: StreamMessage, header: GetHeader, progress: RoutingProgress) {
    const { dropped, origins, routes } = this.#services
    const choice = routes.of(message.subject)
    const subject = subjectWithId(choice.subject, header)
    if ("problem" in subject)
      return this.#unroutable(message, header, subject.tenant, subject.problem)
    const event = eventOf(message, header, subject, choice.forwards, dropped)
    const body = message.data
    const { began = elapsedMs() } = progress
    return Effect.flatMap(this.#asPlanned(event, progress), (progress) => {
      const routed = Effect.suspend(() =>
        this.#routePart({ event, choice, body, progress, began }, 0, "")
      )
      if ((progress.known?.parts.length ?? 0) > 0) return routed
      return Effect.flatMap(origins.repeated(event, header, body), (first) =>
        first === undefined ? routed : this.#leaveOut(event, repeatOf(first))
      )
    })
  }

  /**
   * Returns the event's progress, with a plan that another worker may have stored so long ago that
   * the broker has forgotten its message id.
   */
  #asPlanned(event: Event, progress: RoutingProgress): Effect.Effect<RoutingProgress> {
    const { plans, safeRepublishMs } = this.#services
    const { began = elapsedMs(), known } = progress
    if (known !== undefined || elapsedMs() - began <= safeRepublishMs)
      return Effect.succeed(progress)
    return Effect.map(plans.find(event), (parts) =>
      parts.length === 0 ? progress : { known: { ...nothingRouted(event), parts } }
    )
  }

  /** Stores one part of the plan and its deliveries, then the parts after it. */
  #routePart(recovered: Recovered, part: number, after: string): Routing {
    const { broker, clock, reached } = this.#services
    const { choice, event } = recovered
    const { asked, known } = recovered.progress
    const earlier = known?.parts[part]
    const make = () => ({
      plan: nextPart(event, choice, part, after, partSize(broker.largestMessage())).plan,
      at: clock.currentTimeMillisUnsafe()
    })
    const planned =
      earlier === undefined
        ? this.#storePart(event, (part === 0 ? asked : undefined) ?? make())
        : Effect.succeed({ stored: earlier, isNew: false })
    return Effect.flatMap(planned, ({ isNew, stored }) => {
      reached("plan-stored")
      const { endpoints, last } = stored.plan
      const missing = endpoints.filter(({ id }) => known?.sent.has(id) !== true)
      const sent = Effect.forEach(missing, (each) => this.#follow(recovered, each, stored, isNew), {
        concurrency: Math.min(maxConcurrentStores, missing.length),
        discard: true
      })
      const next = () => this.#routePart(recovered, part + 1, endOf(stored.plan))
      return last ? sent : Effect.andThen(sent, next)
    })
  }

  /**
   * Stores a part of the plan, and returns the part that counts: one that was stored earlier
   * prevails over one made now.
   */
  #storePart(event: Event, { at, plan }: Pick<PlanCommit, "at" | "plan">) {
    const { plans, safeRepublishMs } = this.#services
    return Effect.flatMap(
      plans.storeWithin(safeRepublishMs, event, plan, at),
      ({ duplicate, seq }) =>
        duplicate
          ? Effect.map(readEarlier(event, plan, seq), (stored) => ({ stored, isNew: false }))
          : Effect.succeed({ stored: { plan, seq }, isNew: true })
    )
  }

  /** Stores the delivery to one endpoint of the plan, unless that takes too long by now. */
  #follow(
    { began, body, event, progress }: Recovered,
    to: Planned,
    part: StoredPart,
    isNew: boolean
  ) {
    const { safeRepublishMs } = this.#services
    const { known, tried } = progress
    return Effect.suspend((): Effect.Effect<void, PublishError | RoutingTooSlow> => {
      if (elapsedMs() - began > safeRepublishMs)
        return Effect.fail(new RoutingTooSlow({ ms: safeRepublishMs }))
      const before = known?.failed.get(to.id) ?? untried
      const mayBeStored = tried === undefined ? !isNew : tried.has(to.id)
      return this.#store(event, body, to, part, before, mayBeStored)
    })
  }

  /**
   * Stores a delivery, with the progress of its direct attempt where one was made.
   *
   * @param tried whether somebody may have stored or attempted it.
   */
  #store(
    event: Event,
    body: Uint8Array,
    planned: Planned,
    part: StoredPart,
    before: Progress,
    tried: boolean
  ) {
    const { broker, deliveries, options, reached, safeRepublishMs } = this.#services
    let progress = before
    const publication = Effect.suspend(() => {
      const delivery = deliveryOf(event, planned, progress)
      const partition = partitionOf(event.tenant, planned.id, options.layout.partitions)
      const { headers, subject } = messageOf(broker.names, partition, delivery)
      return broker.publish(subject, body, headers)
    })
    const find = Effect.map(
      Effect.suspend(() => this.#locate(event, planned, part)),
      (found) => {
        progress = found.failed ?? progress
        return found.isSent
      }
    )
    const store = publishOnce(publication, find, { tried })
    return Effect.map(deliveries.within(safeRepublishMs, store), () => reached("delivery-stored"))
  }

  /** Plans an event that goes to no endpoint, with the reason. */
  #leaveOut(event: Event, reason: string) {
    const { clock, facts, options, safeRepublishMs } = this.#services
    const plan: Plan = { part: 0, last: true, endpoints: [], skipped: [] }
    const fact = routedFact(event, plan, clock.currentTimeMillisUnsafe(), options.worker)
    return facts.appendWithin(safeRepublishMs, { ...fact, reason }, factId(event, plan))
  }

  readonly #unroutable = Effect.fnUntraced(
    { self: this },
    function* (
      { seq, storedAt, subject }: StreamMessage,
      header: GetHeader,
      tenant: string | undefined,
      reason: string
    ) {
      const { clock, facts, options } = this.#services
      const at = clock.currentTimeMillisUnsafe()
      yield* Effect.logWarning("unroutable event", { subject, reason })
      const event = eventId(header("nats-msg-id"), seq, storedAt)
      const of = { eventSeq: seq, eventAt: storedAt }
      yield* facts.append(
        {
          ...{ v: 1, kind: "unroutable", at, tenant: tenant ?? nobody, endpoint: nobody, event },
          ...of,
          ...{ reason, worker: options.worker }
        },
        `unroutable.${eventName(of)}`
      )
    }
  )
}

const readEarlier = Effect.fnUntraced(function* (event: Event, plan: Plan, seq: number) {
  const stored = yield* readPart(seq, event)
  if (Option.isSome(stored)) return stored.value
  return yield* Effect.die(
    new Error(`fact ${seq} should hold part ${plan.part} of the plan of event ${event.seq}`)
  )
})
