import { Cause, Effect, Option, Schedule } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { OwnerFence } from "../../cluster/ownership.ts"
import type { Delivery, PlacedDelivery, Progress } from "../../domain/delivery.ts"
import { untried } from "../../domain/delivery.ts"
import type { Fact, Place } from "../../domain/fact.ts"
import { plannedOtherwise } from "../../domain/fact.ts"
import type { AttemptOutcome, DeadReason } from "../../domain/outcome.ts"
import type { Directory, LiveEndpoint } from "../../endpoints/directory.ts"
import type { EndpointHealth } from "../../endpoints/endpoint-health.ts"
import { readFact } from "../../history/delivery-facts.ts"
import type { Facts } from "../../history/facts.ts"
import { isPastDeadline } from "../../policy/next-step.ts"
import type { DirectDelivery, DirectEnd, UncommittedPlan } from "../../routing/partition-owner.ts"
import type { LeftBodies } from "../bodies/left-bodies.ts"
import { deliveredFact, logFact } from "../execution/delivery-fact.ts"
import type { FailedAttempt } from "../execution/failed-attempt.ts"
import type { Settlement } from "../execution/settlement.ts"
import type { StoredSuccess, SuccessRecord } from "../execution/success-log.ts"
import type { TaskContext, TaskSource } from "../execution/task.ts"
import { DeliveryTask } from "../execution/task.ts"
import type { DirectInFlight } from "../recovery/direct-delivery-registry.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import type { LaneScheduler } from "../scheduling/lane-scheduler.ts"

export interface EventSourceOptions {
  readonly memory: PartitionMemory
  readonly context: TaskContext
  /** Settlement of the partition's queue, where a failed delivery continues. */
  readonly settlement: Pick<Settlement, "isOpen">
  readonly fence: OwnerFence
  /** Makes the message id of a fact about a request. */
  readonly nextId: () => string
  /** No attempt begins while this returns false. */
  readonly mayAttempt: () => boolean
  readonly lanes: Pick<LaneScheduler<DeliveryTask>, "enter" | "isQuick">
  readonly health: Pick<EndpointHealth, "isClosed">
  /** Says whether a delivery that failed leaves its body in its event. */
  readonly leftBodies: Pick<LeftBodies, "leave">
  /**
   * Called with key and body size where a delivery failed, and goes on in the queue: 0 where it
   * leaves its body in its event.
   */
  readonly failed: (key: string, bytes: number) => void
  /** True while deliveries may be taken from events. */
  readonly isTaking: () => boolean
  /** Name of the stream of events. */
  readonly events: string
}

/** Maximum deliveries of an endpoint, in flight or in line, for further direct deliveries. */
const maxWaitingDirect = 64

const untriedEnd: DirectEnd = { _tag: "Untried" }
const deliveredEnd: DirectEnd = { _tag: "Delivered" }
const unknownEnd: DirectEnd = { _tag: "Unknown" }

/** Reads a fact that the history is known to hold, however long it takes. */
const readSurely = (seq: number) =>
  readFact(seq).pipe(Effect.retry(Schedule.spaced("1 second")), Effect.orDie)

/** True where both facts are about the same attempt. */
const isSame = (one: Fact, other: Fact): boolean =>
  one.kind === other.kind &&
  one.delivery === other.delivery &&
  one.at === other.at &&
  one.worker === other.worker

/** Marks the outcome `planned-otherwise` if another router's plan won. */
const markPlannedOtherwise = (fact: Fact, planned: Option.Option<Fact>): Fact =>
  Option.exists(planned, ({ eventAt, eventSeq, plan }) => {
    if (eventSeq !== fact.eventSeq || eventAt !== fact.eventAt) return false
    // A plan with several parts may name the endpoint in another part.
    const names = plan?.endpoints.some(({ id }) => id === fact.endpoint) === true
    return names || plan?.last === false
  })
    ? fact
    : { ...fact, reason: plannedOtherwise }

/** A delivery that is in no queue, only in its event. */
export class DirectHandle implements PlacedDelivery {
  readonly direct: DirectDelivery
  readonly place: Place
  /** Set from the moment it is begun. */
  inFlight: DirectInFlight | undefined
  end: DirectEnd = untriedEnd

  /** @param events the stream of events. */
  constructor(events: string, direct: DirectDelivery) {
    this.direct = direct
    const { eventAt, eventSeq } = direct.delivery
    this.place = { stream: events, seq: eventSeq, at: eventAt }
  }

  get delivery(): Delivery {
    return this.direct.delivery
  }

  get body(): Uint8Array {
    return this.direct.body
  }
}

/**
 * Attempts deliveries directly from their events, once. A success needs no message in a queue. A
 * failed delivery goes to the queue with what is known of it. One that cannot be attempted now goes to
 * its endpoint's backlog.
 */
export class EventSource implements TaskSource<DirectHandle> {
  readonly #options: EventSourceOptions
  readonly #directory: Directory["Service"]
  readonly #facts: Facts["Service"]

  constructor(
    options: EventSourceOptions,
    directory: Directory["Service"],
    facts: Facts["Service"]
  ) {
    this.#options = options
    this.#directory = directory
    this.#facts = facts
  }

  /**
   * Takes a delivery directly from its event if it can be attempted promptly: its endpoint is
   * healthy and quick, and few deliveries wait for it. Returns false where it must wait.
   */
  take(direct: DirectDelivery): boolean {
    const { context, events, health, isTaking, lanes, memory } = this.#options
    const { delivery, key } = direct
    const now = context.sender.clock.currentTimeMillisUnsafe()
    const isTaken =
      isTaking() &&
      health.isClosed(key) &&
      lanes.isQuick(key, maxWaitingDirect) &&
      !memory.directDeliveries.endedBefore(key, delivery, now)
    if (isTaken)
      lanes.enter(key, new DeliveryTask(context, this, key, new DirectHandle(events, direct)))
    return isTaken
  }

  begin(handle: DirectHandle): LiveEndpoint | undefined {
    const { context, mayAttempt, memory, settlement } = this.#options
    const { delivery, direct } = handle
    const isOpen = settlement.isOpen && mayAttempt()
    if (!isOpen || isPastDeadline(delivery, context.sender.clock.currentTimeMillisUnsafe()))
      return undefined
    if (direct.mayBeRedelivered) {
      // It is looked for first: it may have ended.
      handle.end = unknownEnd
      return undefined
    }
    const endpoint = this.#directory.liveNow(delivery, direct.key)
    if (endpoint === undefined) return undefined
    direct.begun()
    handle.end = unknownEnd
    handle.inFlight = memory.directDeliveries.begin(delivery)
    return endpoint
  }

  /** Nothing is stored yet: routing stores the delivery instead. */
  decide(): Effect.Effect<undefined> {
    return Effect.undefined
  }

  /** A plan that no fact holds yet is stored with the success. */
  successOf(handle: DirectHandle, _progress: Progress, sent: AttemptOutcome): SuccessRecord {
    const { context, fence, nextId } = this.#options
    const { uncommitted } = handle.direct
    const factOf = (plan?: Fact["plan"]) =>
      deliveredFact(handle, untried, sent, context.worker, plan)
    // A former owner stores the plan separately: another router's plan may count.
    const plan = fence.holds() ? uncommitted?.piggyback() : undefined
    if (uncommitted !== undefined && plan !== undefined) {
      const whole = factOf(plan)
      const fallback = () => this.#appendWithPlan(factOf(), whole, uncommitted)
      return { fact: whole, id: uncommitted.id, fallback }
    }
    const fact = factOf()
    if (uncommitted === undefined || uncommitted.isCommitted) return { fact, id: nextId() }
    const fallback = () => this.#appendAfterPlan(fact, uncommitted, context.successes.append)
    return { fact, id: "", fallback, isFallbackOnly: true }
  }

  complete(handle: DirectHandle): Effect.Effect<void> {
    this.#options.memory.directDeliveries.add(handle.direct.key, handle.delivery)
    handle.end = deliveredEnd
    return Effect.void
  }

  retry(handle: DirectHandle, { fact, progress }: FailedAttempt) {
    return this.#recordFailure(handle, fact, progress)
  }

  deadLetter(handle: DirectHandle, { fact, progress }: FailedAttempt, reason: DeadReason) {
    return this.#recordFailure(handle, { ...fact, reason }, { ...progress, ends: reason })
  }

  afterDefect({ delivery }: DirectHandle, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return Effect.logError("a delivery met a defect as its event was routed", {
      seq: delivery.eventSeq,
      endpoint: delivery.endpoint,
      defect: Cause.squash(cause)
    })
  }

  /** Its body is in the router's prefetch window, which the router adjusts. */
  becameSlow(): void {}

  defer(_key: string, { direct }: DirectHandle): void {
    direct.ended(untriedEnd)
  }

  giveBack(_key: string, { direct }: DirectHandle): void {
    direct.ended(untriedEnd)
  }

  left({ direct, end, inFlight }: DirectHandle): void {
    if (inFlight !== undefined) this.#options.memory.directDeliveries.leave(inFlight)
    direct.ended(end)
  }

  /** Appends the failure's fact; then the delivery goes on in the queue, with its progress. */
  readonly #recordFailure = Effect.fnUntraced(
    { self: this },
    function* (handle: DirectHandle, fact: Fact, progress: Progress) {
      const { context, fence, memory, nextId } = this.#options
      const { uncommitted } = handle.direct
      yield* fence.asOwner
      const append = (fact: Fact, id: string) =>
        Effect.map(
          this.#facts.appendAnew(Effect.as(fence.asOwner, { fact, id })),
          ({ seq }): StoredSuccess => ({ fact, seq })
        )
      const { seq } = yield* uncommitted === undefined || uncommitted.isCommitted
        ? append(fact, nextId())
        : this.#appendAfterPlan(fact, uncommitted, append)
      memory.completed.stored(seq)
      context.reached("outcome-stored")
      memory.directDeliveries.failed(handle.delivery, progress)
      const { body, delivery } = this.#options.leftBodies.leave(handle)
      this.#options.failed(handle.direct.key, body.length)
      const leavesBody = delivery.leftBytes !== undefined
      handle.end = { _tag: "Failed", progress, leavesBody }
      yield* logFact(fact)
    }
  )

  /**
   * Appends a success together with its plan, where the history may hold it already. If the history
   * holds another fact for the plan, the success is appended without it.
   */
  readonly #appendWithPlan = Effect.fnUntraced(
    { self: this },
    function* (fact: Fact, whole: Fact, uncommitted: UncommittedPlan) {
      const { context, fence } = this.#options
      const { id, safeRepublishMs } = uncommitted
      const stored =
        safeRepublishMs > 0
          ? yield* Effect.option(
              this.#facts.appendWhile(fence.stillOwner, safeRepublishMs, whole, id)
            )
          : Option.none()
      if (Option.isSome(stored) && stored.value !== undefined) {
        const { duplicate, seq } = stored.value
        if (!duplicate) return yield* context.successes.confirm({ fact: whole, id }, seq)
        uncommitted.adoptExisting(seq)
      }
      return yield* this.#appendAfterPlan(fact, uncommitted, context.successes.append)
    }
  )

  /**
   * Appends an attempt's fact once the history holds a plan, unless the plan's fact is this
   * outcome.
   */
  readonly #appendAfterPlan = Effect.fnUntraced(
    { self: this },
    function* (
      fact: Fact,
      uncommitted: UncommittedPlan,
      append: (fact: Fact, id: string) => Effect.Effect<StoredSuccess, never, Broker>
    ) {
      const seq = yield* uncommitted.committed
      if (!uncommitted.isUnsure) return yield* append(fact, this.#options.nextId())
      const planned = yield* readSurely(seq)
      if (Option.exists(planned, (there) => isSame(there, fact))) {
        uncommitted.confirmOwn()
        for (const stored of Option.toArray(planned)) this.#facts.confirmed(stored)
        const { successes } = this.#options.context
        return fact.kind === "delivered"
          ? yield* successes.confirm({ fact, id: uncommitted.id }, seq)
          : { fact, seq }
      }
      return yield* append(markPlannedOtherwise(fact, planned), this.#options.nextId())
    }
  )
}
