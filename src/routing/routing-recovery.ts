import { Deferred, Effect, Option, Schema } from "effect"
import type { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { PublishError } from "../broker/publication.ts"
import { publishOnce } from "../broker/publish-once.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Event } from "../domain/event.ts"
import { eventId, eventName, subjectWithId } from "../domain/event.ts"
import type { Plan, Planned } from "../domain/fact.ts"
import type { GetHeader } from "../domain/header-names.ts"
import { givenId } from "../domain/intake.ts"
import { repeatOf } from "../domain/origin.ts"
import { nobody } from "../domain/token.ts"
import { spanText } from "../text/quantities.ts"
import { elapsedMs } from "../time/elapsed.ts"
import { deliveryOf } from "./delivery-store.ts"
import type { FanOutParts } from "./fan-out.ts"
import { maxConcurrentStores } from "./fan-out.ts"
import type { LargeEvent, RouterStops } from "./large-events.ts"
import { makeLocator } from "./partial-routing.ts"
import type { EndpointChoice, StoredPart } from "./plan.ts"
import { endOf, nextPart, partSize, readPart, routedFact } from "./plan.ts"
import { PlanCommit } from "./plan-commit.ts"
import { factId } from "./plan-store.ts"
import type { RecoveryStep, RoutingProgress } from "./routing-progress.ts"
import { partStateOf, recoveryStep } from "./routing-progress.ts"
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
    return `it was not routed within ${spanText(this.ms)}`
  }
}

type Routing = Effect.Effect<
  void,
  PublishError | RoutingTooSlow | RouterStops | BrokerError,
  Broker
>

type Locate = Effect.Success<ReturnType<typeof makeLocator>>

/** One event on the recovery path. */
interface Recovered {
  readonly event: Event
  readonly choice: EndpointChoice
  readonly message: StreamMessage
  /** Undefined where it needs no turns. */
  readonly large: LargeEvent | undefined
  readonly progress: RoutingProgress
  /** When its routing began, ms of the monotonic clock. */
  readonly began: number
}

/** A part of a plan that the history holds. */
interface Part {
  readonly stored: StoredPart
  /**
   * Keys of its endpoints, in its order, where it was stored just now: nobody else follows it then.
   */
  readonly keys: ReadonlyArray<string> | undefined
}

/**
 * The recovery path of routing: for an event that was routed in part, whose plan has several parts,
 * or for which something failed on the fast path. It looks first for what was stored earlier.
 */
export class RoutingRecovery {
  readonly #services: RoutingServices
  readonly #fanOut: FanOutParts
  readonly #locate: Locate

  static readonly make = (services: RoutingServices, fanOut: FanOutParts) =>
    Effect.map(
      makeLocator(services.options.layout.partitions),
      (locate) => new RoutingRecovery(services, fanOut, locate)
    )

  /** @param locate finds the delivery to one endpoint of a stored part. */
  constructor(services: RoutingServices, fanOut: FanOutParts, locate: Locate) {
    this.#services = services
    this.#fanOut = fanOut
    this.#locate = locate
  }

  /**
   * Routes an event from the state that is known, and acknowledges it.
   *
   * @param large the turns of a large event, which has the first one.
   */
  route(message: StreamMessage, header: GetHeader, progress: RoutingProgress, large?: LargeEvent) {
    const { endpoints, reached } = this.#services
    const began = progress.began ?? elapsedMs()
    return endpoints.pass.pipe(
      Effect.andThen(Effect.suspend(() => this.#begin(message, header, progress, began, large))),
      Effect.andThen(
        Effect.sync(() => {
          reached("event-routed")
          message.ack()
        })
      )
    )
  }

  #begin(
    message: StreamMessage,
    header: GetHeader,
    progress: RoutingProgress,
    began: number,
    large: LargeEvent | undefined
  ) {
    const { dropped, origins, routes } = this.#services
    const choice = routes.of(message.subject)
    const subject = subjectWithId(choice.subject, header)
    if ("problem" in subject)
      return this.#unroutable(message, header, subject.tenant, subject.problem)
    const recovered: Recovered = {
      event: eventOf(message, header, subject, choice.forwards, dropped),
      ...{ choice, message, large, progress, began }
    }
    const routed = Effect.suspend(() => this.#routePart(recovered, 0, ""))
    if (partStateOf(progress, 0)._tag === "Stored") return routed
    return Effect.andThen(
      this.#inTime(recovered),
      Effect.flatMap(origins.repeated(recovered.event, header, message.data), (first) =>
        first === undefined ? routed : this.#leaveOut(recovered.event, repeatOf(first))
      )
    )
  }

  /**
   * Fails once it is too late to store a delivery: before anything is searched or stored for it.
   */
  #inTime({ began }: Recovered): Effect.Effect<void, RoutingTooSlow> {
    const { safeRepublishMs } = this.#services
    return Effect.suspend(() =>
      elapsedMs() - began >= safeRepublishMs
        ? Effect.fail(new RoutingTooSlow({ ms: safeRepublishMs }))
        : Effect.void
    )
  }

  /** Stores one part of the plan and its deliveries, then the parts after it. */
  #routePart(recovered: Recovered, part: number, after: string): Routing {
    const { large } = recovered
    const { reached } = this.#services
    return Effect.flatMap(this.#partOf(recovered, part, after), ({ keys, stored }) => {
      reached("plan-stored")
      const { last } = stored.plan
      const next = Effect.suspend(() => {
        const more = this.#routePart(recovered, part + 1, endOf(stored.plan))
        const turn = large?.turn(this.#partSize(recovered, stored.plan))
        return turn === undefined ? more : Effect.andThen(turn, more)
      })
      const rest: Routing = last ? Effect.void : next
      if (keys !== undefined && this.#mayFanOut) return this.#fan(recovered, stored, keys, rest)
      const followed = this.#follow(recovered, stored, recovered.progress, keys !== undefined)
      return Effect.andThen(followed, rest)
    })
  }

  /** How many deliveries the part after this one has at most. */
  #partSize({ choice }: Recovered, { endpoints }: Plan): number {
    const { broker } = this.#services
    const left = Math.max(1, choice.all.length - endpoints.length)
    return Math.min(left, partSize(broker.largestMessage()))
  }

  /** As on the fast path: where endpoints and queues are as usual. */
  get #mayFanOut(): boolean {
    const { deliveries, endpoints } = this.#services
    return deliveries.isHealthy() && endpoints.isOpen()
  }

  /**
   * Brings a part that was stored just now to its endpoints as on the fast path, and what that
   * leaves as recovery does. The rest is routed as soon as all deliveries of the part have begun.
   */
  readonly #fan = Effect.fnUntraced(
    { self: this },
    function* (
      recovered: Recovered,
      stored: StoredPart,
      keys: ReadonlyArray<string>,
      rest: Routing
    ): Effect.fn.Return<void, Effect.Error<Routing>, Broker> {
      const { clock, plans } = this.#services
      const { began, event, large, message } = recovered
      const begun = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<RoutingProgress | undefined>()
      let isOpen = true
      const step = (part: () => void) => {
        if (!isOpen) return
        try {
          part()
        } catch (defect) {
          end(Effect.die(defect))
        }
      }
      const end = (how: Effect.Effect<RoutingProgress | undefined>) => {
        isOpen = false
        Deferred.doneUnsafe(begun, Effect.void)
        Deferred.doneUnsafe(ended, how)
      }
      const at = clock.currentTimeMillisUnsafe()
      const planCommit = PlanCommit.ofStored(plans, event, stored, at, began)
      const routed = { message, planCommit, keys, began }
      step(() =>
        this.#fanOut(
          routed,
          { step },
          {
            onBegun: () => void Deferred.doneUnsafe(begun, Effect.void),
            onComplete: () => end(Effect.undefined),
            onFallback: (progress) => end(Effect.succeed(progress)),
            onSlow: () => undefined
          }
        )
      )
      const completed = Effect.flatMap(Deferred.await(ended), (progress) =>
        progress === undefined ? Effect.void : this.#follow(recovered, stored, progress, true)
      )
      // None ends the other: what is attempted is not left to another router meanwhile.
      const both = Effect.all([Effect.exit(completed), Effect.exit(rest)], { concurrency: 2 })
      const exits = yield* Deferred.await(begun).pipe(
        Effect.andThen(Effect.sync(() => large?.over())),
        Effect.andThen(both),
        Effect.ensuring(
          Effect.sync(() => {
            isOpen = false
          })
        )
      )
      for (const exit of exits) yield* exit
    }
  )

  /** Returns a part of the plan as the history holds it, once it does. */
  #partOf(recovered: Recovered, part: number, after: string) {
    const { broker, clock } = this.#services
    const { choice, event, progress } = recovered
    const state = partStateOf(progress, part)
    if (state._tag === "Stored")
      return Effect.succeed<Part>({ stored: state.part, keys: undefined })
    const store = Effect.suspend(() => {
      if (state._tag === "Asked") return this.#storePart(event, state, keysOf(event, state.plan))
      const { keys, plan } = nextPart(event, choice, part, after, partSize(broker.largestMessage()))
      return this.#storePart(event, { plan, at: clock.currentTimeMillisUnsafe() }, keys)
    })
    return Effect.andThen(this.#inTime(recovered), store)
  }

  /**
   * Stores a part of the plan, and returns the part that counts: one that was stored earlier
   * prevails over one made now.
   */
  #storePart(
    event: Event,
    { at, plan }: Pick<PlanCommit, "at" | "plan">,
    keys: ReadonlyArray<string>
  ) {
    const { plans, safeRepublishMs } = this.#services
    return Effect.flatMap(
      plans.storeWithin(safeRepublishMs, event, plan, at),
      ({ duplicate, seq }) =>
        duplicate
          ? Effect.map(
              readEarlier(event, plan, seq),
              (stored): Part => ({ stored, keys: undefined })
            )
          : Effect.succeed<Part>({ stored: { plan, seq }, keys })
    )
  }

  /** Stores the deliveries of a part that were not sent. */
  #follow(recovered: Recovered, part: StoredPart, progress: RoutingProgress, isNew: boolean) {
    const { endpoints } = part.plan
    return Effect.forEach(
      endpoints,
      (planned) =>
        this.#followOne(recovered, planned, part, recoveryStep(progress, planned, isNew)),
      { concurrency: Math.min(maxConcurrentStores, endpoints.length), discard: true }
    )
  }

  #followOne(recovered: Recovered, planned: Planned, part: StoredPart, step: RecoveryStep) {
    return step._tag === "Leave"
      ? Effect.void
      : Effect.andThen(
          this.#inTime(recovered),
          Effect.suspend(() => this.#store(recovered, planned, part, step))
        )
  }

  #store(
    { event, message }: Recovered,
    planned: Planned,
    part: StoredPart,
    step: Extract<RecoveryStep, { readonly _tag: "Store" }>
  ) {
    const { deliveries, reached, safeRepublishMs, store } = this.#services
    let { progress } = step
    const publication = Effect.suspend(() =>
      store.enqueue(deliveryOf(event, planned, progress), message.data)
    )
    const find = Effect.map(
      Effect.suspend(() => this.#locate(event, planned, part)),
      (found) => {
        progress = found.failed ?? progress
        return found.isSent
      }
    )
    const publish = publishOnce(publication, find, { tried: step.mayBeSent })
    return Effect.map(deliveries.within(safeRepublishMs, publish), () => reached("delivery-stored"))
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
      const event = eventId(givenId(header), seq, storedAt)
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

const keysOf = ({ tenant }: Event, { endpoints }: Plan): ReadonlyArray<string> =>
  endpoints.map(({ id }) => endpointKey(tenant, id))

const readEarlier = Effect.fnUntraced(function* (event: Event, plan: Plan, seq: number) {
  const stored = yield* readPart(seq, event)
  if (Option.isSome(stored)) return stored.value
  return yield* Effect.die(
    new Error(`fact ${seq} should hold part ${plan.part} of the plan of event ${event.seq}`)
  )
})
