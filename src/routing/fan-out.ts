import { Effect, FiberSet } from "effect"
import type { Broker } from "../broker/broker.ts"
import type { FailpointName } from "../broker/failpoint.ts"
import { Failpoint } from "../broker/failpoint.ts"
import type { InFlightWork } from "../broker/in-flight.ts"
import type { StoreFailure } from "../broker/publish-once.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { untried } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { EventIdentity } from "../domain/event.ts"
import type { Planned } from "../domain/fact.ts"
import { partitionOfKey } from "../domain/names.ts"
import type { Timer } from "../time/timers.ts"
import { timers } from "../time/timers.ts"
import type { DeliveryStore } from "./delivery-store.ts"
import { afterDirectEnd, deliveryOf } from "./delivery-store.ts"
import type { TenantDirectLoad, TimedEvent } from "./direct-load.ts"
import { DirectLoad, SlowEventTimer } from "./direct-load.ts"
import type { DirectDelivery, DirectEnd, OwnedPartitions } from "./partition-owner.ts"
import type { PlanCommit } from "./plan-commit.ts"
import type { RoutingProgress } from "./routing-progress.ts"
import { progressOf } from "./routing-progress.ts"

/** Maximum deliveries of one event that await the broker's acknowledgement at the same time. */
export const maxConcurrentStores = 64
/** How long the single delivery of an event may last before its plan is stored separately, ms. */
const planCommitDelayMs = 1_000

/**
 * An event and a part of its plan, which was stored just now, or is committed with its only delivery.
 */
export interface Routed {
  readonly message: StreamMessage
  readonly planCommit: PlanCommit
  /** Endpoint keys, in the order of the plan. */
  readonly keys: ReadonlyArray<string>
  /** When its routing began, ms of the monotonic clock. */
  readonly began: number
}

/** The steps of an event's routing: none once it has ended or was cancelled. */
type Steps = Pick<InFlightWork<Broker>, "step">

/** Brings a part of an event's plan to its endpoints. */
export type FanOutParts = (routed: Routed, work: Steps, then: FanOutCallbacks) => void

interface FanOutOptions {
  /** Number of partitions. */
  readonly partitions: number
  /** Maximum bytes of event bodies in direct delivery. */
  readonly bytes: number
  /** True where several tenants have endpoints. */
  readonly hasOtherTenants: () => boolean
  readonly owned: Pick<OwnedPartitions, "attempt">
  readonly store: DeliveryStore
  /**
   * True where an event whose routing began then may be with another router since, ms of
   * `elapsedMs`.
   */
  readonly mayBeRedelivered: (began: number) => boolean
}

/** Callbacks of one fan-out. */
export interface FanOutCallbacks {
  /** Called when each delivery is stored or has ended. */
  readonly onComplete: () => void
  /** Called, perhaps repeatedly, when no delivery is left to begin. */
  readonly onBegun?: () => void
  /** Called when the recovery path must continue, with the progress so far. */
  readonly onFallback: (routingProgress: RoutingProgress) => void
  /**
   * Called when direct deliveries of the event take longer than {@link SlowEventTimer} allows, with
   * the number of deliveries that are not stored and have not ended.
   */
  readonly onSlow: (remaining: number) => void
}

/** What the fan-outs of all events share. */
interface Common {
  readonly options: FanOutOptions
  readonly reached: (step: FailpointName) => void
  readonly slowTimer: SlowEventTimer
  readonly load: DirectLoad
  /** Logs a defect of Petrel. */
  readonly logDefect: (what: string, event: EventIdentity) => void
}

/**
 * What a fan-out does:
 *
 *     waiting ⇄ beginning
 *        ↓ ↘        ↓
 *        ↓  └───→ closing → handed over
 *     complete
 *
 * Beginning: deliveries are begun, as many as the limits allow.
 * Waiting: those that were begun are attempted or stored; as one ends, the next is begun.
 * Closing: something is not as usual. Nothing else is begun; recovery continues once nothing is
 *   attempted or stored any more.
 */
type FanOutMode = "beginning" | "waiting" | "closing" | "complete" | "handed over"

/** Brings one event to the endpoints of its plan. A class, because there is one per event. */
class FanOut implements TimedEvent {
  before: TimedEvent | undefined
  after: TimedEvent | undefined
  since = 0
  readonly #common: Common
  readonly #routed: Routed
  readonly #work: Steps
  readonly #then: FanOutCallbacks
  #mode: FanOutMode = "waiting"
  /** Number of endpoints of the plan that it has come to. */
  #next = 0
  /** Deliveries that are being stored. */
  #storing = 0
  /** Direct deliveries that have not ended. */
  #attempting = 0
  /** Direct deliveries whose request is not sent yet. */
  #inLine = 0
  /** Direct deliveries that were found slow: they no longer count against the limit per event. */
  #slow = 0
  /** What its tenant has in direct delivery; set with the first one. */
  #tenantLoad: TenantDirectLoad | undefined
  /** Retries the plan commit while the single direct delivery is slow. */
  #commitTimer: Timer | undefined
  /** Endpoints that are not known to have a delivery. Allocated on first use. */
  #failures: Map<string, StoreFailure> | undefined
  /** The progress of direct deliveries that failed, by endpoint. Allocated on first use. */
  #failed: Map<string, Progress> | undefined

  constructor(common: Common, routed: Routed, work: Steps, then: FanOutCallbacks) {
    this.#common = common
    this.#routed = routed
    this.#work = work
    this.#then = then
  }

  /** Begins as many deliveries as the limits allow. Ends the fan-out where nothing is left. */
  advance(): void {
    // A delivery may end while it is begun: the loop that began it goes on by itself.
    if (this.#mode === "beginning") return
    if (this.#routed.planCommit.isUnsure) this.#close()
    if (this.#mode === "waiting") this.#beginNext()
    if (this.#storing + this.#attempting > 0) return
    if (this.#mode === "waiting") {
      this.#mode = "complete"
      this.#then.onComplete()
    } else if (this.#mode === "closing") {
      this.#mode = "handed over"
      this.#then.onFallback(this.#progress())
    }
  }

  /** Begins nothing else: recovery continues the event. */
  #close(): void {
    if (this.#mode === "waiting" || this.#mode === "beginning") this.#mode = "closing"
    else if (this.#mode !== "closing") this.defect("its routing had ended")
  }

  #beginNext(): void {
    const { keys, planCommit } = this.#routed
    const { event, plan } = planCommit
    this.#mode = "beginning"
    while (
      this.#isBeginning &&
      this.#storing + this.#attempting - this.#slow < maxConcurrentStores
    ) {
      const planned = plan.endpoints[this.#next]
      if (planned === undefined) break
      const key = keys[this.#next++] ?? endpointKey(event.tenant, planned.id)
      if (!this.#attempt(planned, key)) this.#storeUntried(planned)
    }
    if (!this.#isBeginning) return
    this.#mode = "waiting"
    if (this.#next >= plan.endpoints.length) this.#then.onBegun?.()
  }

  /** Read anew each time: what is begun may close the fan-out at once. */
  get #isBeginning(): boolean {
    return this.#mode === "beginning"
  }

  get areRequestsBegun(): boolean {
    return this.#inLine === 0
  }

  becameSlow(): void {
    const { planCommit } = this.#routed
    const unbegun = planCommit.plan.endpoints.length - this.#next
    this.#slow = this.#attempting
    if (!planCommit.isCommitted)
      this.#commitTimer = timers.every(planCommitDelayMs, () =>
        this.#work.step(() => planCommit.commit())
      )
    this.#then.onSlow(this.#attempting + this.#storing + unbegun)
    this.#work.step(() => this.advance())
  }

  /** Called when the request of a direct delivery is sent. */
  requestBegun(): void {
    this.#inLine--
  }

  /** Called when a direct delivery ends. */
  ended(planned: Planned, end: DirectEnd, wentOut: boolean): void {
    const { planCommit } = this.#routed
    if (this.#tenantLoad !== undefined) this.#leave(wentOut, this.#tenantLoad)
    this.#work.step(() => {
      const isLate = end._tag !== "Delivered" && this.#isTooLate
      const next = afterDirectEnd(end._tag, planCommit.isUnsure, isLate)
      if (next === "locate") this.#noteFailure(planned, "unknown")
      else if (end._tag === "Failed") {
        this.#failed ??= new Map()
        this.#failed.set(planned.id, end.progress)
        this.#store(planned, end.progress, end.leavesBody)
      } else if (next === "store") this.#storeUntried(planned)
      this.advance()
    })
  }

  /**
   * True where the broker may have forgotten what was stored as routing began, or another router may
   * have stored it.
   */
  get #isTooLate(): boolean {
    return this.#routed.planCommit.safeRepublishMs <= 0 || this.mayBeRedelivered
  }

  get mayBeRedelivered(): boolean {
    return this.#common.options.mayBeRedelivered(this.#routed.began)
  }

  /** Commits the plan first: no delivery is stored whose plan the history does not hold. */
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
        if (planCommit.isUnsure) this.#noteFailure(planned, "unknown")
        else {
          this.#common.reached("plan-stored")
          this.#store(planned, untried)
        }
        this.advance()
      })
    )
  }

  #attempt(planned: Planned, key: string): boolean {
    const { load, options } = this.#common
    const tenantLoad = this.#tenantLoad ?? load.of(this.#routed.planCommit.event.tenant)
    this.#tenantLoad = tenantLoad
    if (!load.mayBegin(tenantLoad)) return false
    let isTaken = false
    this.#begin(tenantLoad)
    try {
      const direct = new PlannedDirectDelivery(this, this.#routed, planned, key)
      isTaken = options.owned.attempt(partitionOfKey(key, options.partitions), direct)
    } finally {
      if (!isTaken) this.#leave(false, tenantLoad)
    }
    return isTaken
  }

  #begin(tenantLoad: TenantDirectLoad): void {
    const { load, slowTimer } = this.#common
    const isFirst = this.#attempting++ === 0
    load.add(tenantLoad, 1, isFirst ? this.#routed.message.data.length : 0)
    this.#inLine++
    slowTimer.add(this)
  }

  #leave(wentOut: boolean, tenantLoad: TenantDirectLoad): void {
    const { load, slowTimer } = this.#common
    if (!wentOut) this.#inLine--
    const isLast = --this.#attempting === 0
    load.add(tenantLoad, -1, isLast ? -this.#routed.message.data.length : 0)
    this.#slow = Math.min(this.#slow, this.#attempting)
    if (!isLast) return
    slowTimer.remove(this)
    timers.cancel(this.#commitTimer)
  }

  #store(planned: Planned, progress: Progress, leavesBody = false): void {
    const { message, planCommit } = this.#routed
    const { store } = this.#common.options
    this.#storing++
    const delivery = deliveryOf(planCommit.event, planned, progress)
    const stored = (why?: StoreFailure) => this.#stored(planned, why)
    if (leavesBody)
      store.store({ ...delivery, leftBytes: message.data.length }, new Uint8Array(), stored)
    else store.store(delivery, message.data, stored)
  }

  #stored(planned: Planned, why: StoreFailure | undefined): void {
    this.#work.step(() => {
      this.#storing--
      if (why !== undefined) this.#noteFailure(planned, why)
      else this.#common.reached("delivery-stored")
      if (this.#isTooLate) this.#close()
      this.advance()
    })
  }

  #noteFailure({ id }: Planned, why: StoreFailure): void {
    this.#failures ??= new Map()
    this.#failures.set(id, why)
    this.#close()
  }

  defect(what: string): void {
    const { at, seq } = this.#routed.planCommit.event
    this.#common.logDefect(what, { eventSeq: seq, eventAt: at })
  }

  #progress(): RoutingProgress {
    const { began, planCommit } = this.#routed
    const failures = this.#failures
    return progressOf({ planCommit, began, begun: this.#next, failures, failed: this.#failed })
  }
}

/** The direct delivery of an event to one endpoint. */
class PlannedDirectDelivery implements DirectDelivery {
  readonly delivery: Delivery
  readonly key: string
  readonly body: Uint8Array
  readonly uncommitted: PlanCommit | undefined
  readonly #of: FanOut
  readonly #planned: Planned
  /** In line until its request is sent. */
  #mode: "in line" | "sending" | "ended" = "in line"

  constructor(of: FanOut, { message, planCommit }: Routed, planned: Planned, key: string) {
    this.#of = of
    this.#planned = planned
    this.delivery = deliveryOf(planCommit.event, planned, untried)
    this.key = key
    this.body = message.data
    this.uncommitted = planCommit.isCommitted ? undefined : planCommit
  }

  get mayBeRedelivered(): boolean {
    return this.#of.mayBeRedelivered
  }

  begun(): void {
    if (this.#mode === "in line") {
      this.#mode = "sending"
      this.#of.requestBegun()
    } else this.#of.defect(`${this.key} was begun while ${this.#mode}`)
  }

  ended(end: DirectEnd): void {
    if (this.#mode === "ended") {
      this.#of.defect(`${this.key} had ended`)
      return
    }
    const wentOut = this.#mode === "sending"
    this.#mode = "ended"
    this.#of.ended(this.#planned, end, wentOut)
  }
}

/**
 * Makes the fast path, without fibers, from a plan to its deliveries. A delivery is attempted
 * directly where this worker can do so promptly. Else it is stored: in its endpoint's backlog where
 * it must wait there, otherwise in its partition's queue.
 */
export const makeFanOut = Effect.fnUntraced(function* (options: FanOutOptions) {
  const reached = yield* Failpoint
  const slowTimer = new SlowEventTimer()
  const load = new DirectLoad(options.bytes, options.hasOtherTenants)
  yield* Effect.addFinalizer(() => Effect.sync(() => slowTimer.close()))
  const run = yield* FiberSet.makeRuntime<never>()
  const logDefect: Common["logDefect"] = (what, event) => {
    run(Effect.logError("ignored what a direct delivery cannot do", { what, ...event }))
  }
  const common: Common = { options, reached, slowTimer, load, logDefect }
  const fanOut: FanOutParts = (routed, work, then) =>
    new FanOut(common, routed, work, then).advance()
  return fanOut
})
