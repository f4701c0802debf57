import { Effect } from "effect"
import { Broker } from "../broker/connection.ts"
import { elapsedMs } from "../broker/elapsed.ts"
import type { FailpointName } from "../broker/failpoint.ts"
import { Failpoint } from "../broker/failpoint.ts"
import type { InFlightWork } from "../broker/in-flight.ts"
import type { StoreFailure } from "../broker/publish-once.ts"
import { mayBeStored } from "../broker/publish-once.ts"
import type { Publisher } from "../broker/publisher.ts"
import { PublishError } from "../broker/publisher.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { untried } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Planned } from "../domain/fact.ts"
import type { Names } from "../domain/names.ts"
import { partitionOf, partitionOfKey } from "../domain/names.ts"
import type { BacklogCandidate, DirectDelivery, DirectEnd } from "./direct-delivery.ts"
import type { PartialRouting } from "./partial-routing.ts"
import { nothingRouted } from "./partial-routing.ts"
import type { PlanCommit } from "./plan-commit.ts"
import { deliveryOf, messageOf } from "./planned.ts"
import type { TimedEvent } from "./slow-event-timer.ts"
import { SlowEventTimer } from "./slow-event-timer.ts"

/** Deliveries of one event that await their acknowledgement at the same time. */
export const maxConcurrentStores = 64
/** Deliveries that are attempted from their events at the same time, or stand in line for it. */
const maxDirectDeliveries = 768
/** How long the only delivery of an event may last before its plan is told by itself, ms. */
const planCommitDelayMs = 1_000

/** What this worker's own partitions do with a delivery that is in no queue. */
export interface OwnedPartitions {
  /** Attempts a delivery from its event where this worker may do that in a moment; else says false. */
  readonly attempt: (partition: number, direct: DirectDelivery) => boolean
  /** Stores a delivery in its endpoint's backlog where it would have to wait there; else says false. */
  readonly storeInBacklog: (partition: number, kept: BacklogCandidate) => boolean
}

/** What is known of an event's routing when it is gone on with. */
export interface RoutingProgress {
  /** Its plan as far as it is stored, and who has a delivery; nothing where nobody has begun. */
  readonly known: PartialRouting | undefined
  /**
   * Endpoints whose delivery may have been stored, or attempted: nobody knows. Undefined where that
   * goes for all of a plan that was stored earlier.
   */
  readonly tried?: ReadonlySet<string>
  /** When that was begun, ms of the monotonic clock. (Default: now) */
  readonly began?: number
  /** The plan that it was tried to store, where it may have been. */
  readonly asked?: Pick<PlanCommit, "plan" | "at">
}

/** An event with a plan in one part: it was stored just now, or is told with its only delivery. */
export interface Routed {
  readonly message: StreamMessage
  readonly planCommit: PlanCommit
  /** Of the endpoints of its plan, one after the other. */
  readonly keys: ReadonlyArray<string>
  /** ms of the monotonic clock */
  readonly began: number
}

export interface FanOutOptions {
  /** How many there are. */
  readonly partitions: number
  /** How long the storing of an event's deliveries may take, ms. */
  readonly patience: number
  /** Bodies of events that are attempted at the same time, bytes. */
  readonly bytes: number
  readonly owned: OwnedPartitions
}

/** What follows a fan-out. */
export interface FanOutCallbacks {
  /** Each delivery is stored, or has ended. */
  readonly onComplete: () => void
  /** Something was not as usual: how far it has come. */
  readonly onFallback: (routingProgress: RoutingProgress) => void
  /** It will be under way for longer than a moment. */
  readonly onSlow: () => void
}

/** What the fan-outs of all events have in common. */
interface Common {
  readonly options: FanOutOptions
  readonly names: Names
  readonly publisher: Publisher
  readonly reached: (step: FailpointName) => void
  readonly moments: SlowEventTimer
  /** Deliveries that are attempted, and bytes of their events' bodies. */
  readonly attempted: { deliveries: number; bytes: number }
}

/** The way of one event to the endpoints of its plan. A class, for there is one for each event. */
class FanOut implements TimedEvent {
  before: TimedEvent | undefined
  after: TimedEvent | undefined
  since = 0
  readonly #common: Common
  readonly #routed: Routed
  readonly #work: InFlightWork<Broker>
  readonly #then: FanOutCallbacks
  /** Those that have no delivery, as far as is known; made when there is one. */
  #without: Map<string, StoreFailure> | undefined
  #failed: Map<string, Progress> | undefined
  #next = 0
  #storing = 0
  #attempting = 0
  #inLine = 0
  /** Of those that are attempted: they no longer stand in the way of others. */
  #lasting = 0
  /** While some are attempted that have not lasted yet. */
  #isYoung = false
  /** While the plan is not told although the only delivery lasts. */
  #tells: NodeJS.Timeout | undefined
  #isLate = false

  constructor(common: Common, routed: Routed, work: InFlightWork<Broker>, then: FanOutCallbacks) {
    this.#common = common
    this.#routed = routed
    this.#work = work
    this.#then = then
  }

  /** Goes on with it, as far as may be done now. */
  advance(): void {
    const { keys, planCommit } = this.#routed
    const { event, plan } = planCommit
    while (
      this.#isAsUsual &&
      this.#storing + this.#attempting - this.#lasting < maxConcurrentStores
    ) {
      const planned = plan.endpoints[this.#next]
      if (planned === undefined) break
      const key = keys[this.#next++] ?? endpointKey(event.tenant, planned.id)
      if (!this.#attempt(planned, key)) this.#storeUntried(planned)
    }
    if (this.#storing + this.#attempting > 0) return
    if (this.#isAsUsual) this.#then.onComplete()
    else this.#then.onFallback(this.#soFar())
  }

  get areRequestsBegun(): boolean {
    return this.#inLine === 0
  }

  becameSlow(): void {
    const { planCommit } = this.#routed
    this.#isYoung = false
    this.#lasting = this.#attempting
    if (!planCommit.isCommitted)
      this.#tells = setInterval(() => this.#work.step(() => planCommit.commit()), planCommitDelayMs)
    this.#then.onSlow()
    this.#work.step(() => this.advance())
  }

  /** The request of one that is attempted goes out. */
  requestBegun(): void {
    this.#inLine--
  }

  /** One that was attempted has come to an end. */
  ended(planned: Planned, end: DirectEnd, wentOut: boolean): void {
    const { began, planCommit } = this.#routed
    this.#leave(wentOut)
    this.#work.step(() => {
      // Meanwhile another router may have stored it, and the broker have forgotten that.
      const isUnsure = end._tag === "Failed" && elapsedMs() - began > this.#common.options.patience
      if (end._tag === "Unknown" || isUnsure || planCommit.isUnsure) this.#lack(planned, "unknown")
      else if (end._tag === "Failed") {
        this.#failed ??= new Map()
        this.#failed.set(planned.id, end.progress)
        this.#store(planned, end.progress)
      } else if (end._tag === "Untried") this.#storeUntried(planned)
      this.advance()
    })
  }

  get #isAsUsual(): boolean {
    return this.#without === undefined && !this.#isLate && !this.#routed.planCommit.isUnsure
  }

  /** Nothing is stored that rests upon a plan which the history does not have. */
  #storeUntried(planned: Planned): void {
    const { planCommit } = this.#routed
    if (planCommit.isCommitted) {
      this.#store(planned, untried)
      return
    }
    this.#storing++
    planCommit.commitThen(() =>
      this.#work.step(() => {
        this.#storing--
        if (planCommit.isUnsure) this.#lack(planned, "unknown")
        else {
          this.#common.reached("plan-stored")
          this.#store(planned, untried)
        }
        this.advance()
      })
    )
  }

  #attempt(planned: Planned, key: string): boolean {
    const { attempted, options } = this.#common
    if (attempted.deliveries >= maxDirectDeliveries || attempted.bytes >= options.bytes)
      return false
    let isTaken = false
    this.#begin()
    try {
      const direct = new FromEvent(this, this.#routed, planned, key)
      isTaken = options.owned.attempt(partitionOfKey(key, options.partitions), direct)
    } finally {
      if (!isTaken) this.#leave(false)
    }
    return isTaken
  }

  #begin(): void {
    const { attempted, moments } = this.#common
    attempted.deliveries++
    this.#inLine++
    if (this.#attempting++ === 0) attempted.bytes += this.#routed.message.data.length
    if (this.#isYoung) return
    this.#isYoung = true
    moments.add(this)
  }

  #leave(wentOut: boolean): void {
    const { attempted, moments } = this.#common
    if (!wentOut) this.#inLine--
    attempted.deliveries--
    this.#attempting--
    this.#lasting = Math.min(this.#lasting, this.#attempting)
    if (this.#attempting > 0) return
    attempted.bytes -= this.#routed.message.data.length
    if (this.#isYoung) moments.remove(this)
    this.#isYoung = false
    clearInterval(this.#tells)
  }

  #store(planned: Planned, progress: Progress): void {
    const { names, options, publisher } = this.#common
    const { message, planCommit } = this.#routed
    const delivery = deliveryOf(planCommit.event, planned, progress)
    const partition = partitionOf(delivery.tenant, delivery.endpoint, options.partitions)
    this.#storing++
    const ended = (why?: StoreFailure) => this.#stored(planned, why)
    const keep = () =>
      options.owned.storeInBacklog(partition, { delivery, body: message.data, ended })
    if (progress === untried && keep()) return
    const { headers, subject } = messageOf(names, partition, delivery)
    publisher.send(subject, message.data, headers, (result) =>
      ended(result instanceof PublishError ? result : undefined)
    )
  }

  #stored(planned: Planned, why: StoreFailure | undefined): void {
    const { options, reached } = this.#common
    this.#work.step(() => {
      this.#storing--
      if (why !== undefined) this.#lack(planned, why)
      else reached("delivery-stored")
      this.#isLate ||= elapsedMs() - this.#routed.began > options.patience
      this.advance()
    })
  }

  #lack({ id }: Planned, why: StoreFailure): void {
    this.#without ??= new Map()
    this.#without.set(id, why)
  }

  #soFar(): RoutingProgress {
    const { began, planCommit } = this.#routed
    const { event, plan, stored } = planCommit
    if (stored === undefined) return { known: undefined, began }
    const ids = plan.endpoints.slice(0, this.#next).map(({ id }) => id)
    const without = [...(this.#without ?? [])]
    const sent = new Set(ids.filter((id) => this.#without?.has(id) !== true))
    const unsure = without.filter(([, why]) => why === "unknown" || mayBeStored(why))
    const failed = this.#failed ?? new Map()
    const known = { ...nothingRouted(event), parts: [stored], sent, failed }
    return { known, tried: new Set(unsure.map(([id]) => id)), began }
  }
}

/** The delivery of an event to one endpoint, attempted from the event. */
class FromEvent implements DirectDelivery {
  readonly delivery: Delivery
  readonly key: string
  readonly body: Uint8Array
  readonly uncommitted: PlanCommit | undefined
  readonly #of: FanOut
  readonly #planned: Planned
  #isBegun = false

  constructor(of: FanOut, { message, planCommit }: Routed, planned: Planned, key: string) {
    this.#of = of
    this.#planned = planned
    this.delivery = deliveryOf(planCommit.event, planned, untried)
    this.key = key
    this.body = message.data
    this.uncommitted = planCommit.isCommitted ? undefined : planCommit
  }

  begun(): void {
    this.#isBegun = true
    this.#of.requestBegun()
  }

  ended(end: DirectEnd): void {
    this.#of.ended(this.#planned, end, this.#isBegun)
  }
}

/**
 * Makes what brings an event to the endpoints of its plan without fibers: where this worker may do
 * that in a moment it attempts the delivery itself; else it stores it in its endpoint's backlog, where
 * it must wait there, or in its partition's queue.
 */
export const makeFanOut = Effect.fnUntraced(function* (options: FanOutOptions) {
  const { names, publisher } = yield* Broker
  const reached = yield* Failpoint
  const moments = new SlowEventTimer()
  yield* Effect.addFinalizer(() => Effect.sync(() => moments.close()))
  const attempted = { deliveries: 0, bytes: 0 }
  const common: Common = { options, names, publisher, reached, moments, attempted }
  return (routed: Routed, work: InFlightWork<Broker>, then: FanOutCallbacks) =>
    new FanOut(common, routed, work, then).advance()
})
