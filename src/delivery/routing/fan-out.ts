import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { elapsedMs } from "../../broker/elapsed.ts"
import type { Publisher } from "../../broker/publisher.ts"
import { PublishError } from "../../broker/publisher.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import { untried } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Planned } from "../../domain/fact.ts"
import type { Names } from "../../domain/names.ts"
import { partitionOf, partitionOfKey } from "../../domain/names.ts"
import type { Kept } from "../backlog/keeping.ts"
import type { Step } from "../checkpoint.ts"
import { Checkpoint } from "../checkpoint.ts"
import type { Lack } from "../memory/store-once.ts"
import { mayBeStored } from "../memory/store-once.ts"
import type { Straight, StraightEnd } from "../straight.ts"
import type { Plain } from "../underway.ts"
import type { Begun } from "./begun.ts"
import { nothing } from "./begun.ts"
import type { Momentary } from "./moments.ts"
import { Moments } from "./moments.ts"
import { deliveryOf, messageOf } from "./planned.ts"
import type { Telling } from "./telling.ts"

/** Deliveries of one event that await their acknowledgement at the same time. */
export const fanOut = 64
/** Deliveries that are attempted from their events at the same time, or stand in line for it. */
const mostStraight = 768
/** How long the only delivery of an event may last before its plan is told by itself, ms. */
const untold = 1_000

/** What this worker's own partitions do with a delivery that is in no queue. */
export interface Owned {
  /** Attempts a delivery from its event where this worker may do that in a moment; else says false. */
  readonly attempt: (partition: number, straight: Straight) => boolean
  /** Stores a delivery in its endpoint's backlog where it would have to wait there; else says false. */
  readonly keep: (partition: number, kept: Kept) => boolean
}

/** What is known of an event's routing when it is gone on with. */
export interface SoFar {
  /** Its plan as far as it is stored, and who has a delivery; nothing where nobody has begun. */
  readonly known: Begun | undefined
  /**
   * Endpoints whose delivery may have been stored, or attempted: nobody knows. Undefined where that
   * goes for all of a plan that was stored earlier.
   */
  readonly tried?: ReadonlySet<string>
  /** When that was begun, ms of the monotonic clock. (Default: now) */
  readonly began?: number
  /** The plan that it was tried to store, where it may have been. */
  readonly asked?: Pick<Telling, "plan" | "at">
}

/** An event with a plan in one part: it was stored just now, or is told with its only delivery. */
export interface Routed {
  readonly message: StreamMessage
  readonly telling: Telling
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
  readonly owned: Owned
}

/** What follows a fan-out. */
export interface Then {
  /** Each delivery is stored, or has ended. */
  readonly done: () => void
  /** Something was not as usual: how far it has come. */
  readonly otherwise: (sofar: SoFar) => void
  /** It will be under way for longer than a moment. */
  readonly lasts: () => void
}

/** What the fan-outs of all events have in common. */
interface Common {
  readonly options: FanOutOptions
  readonly names: Names
  readonly publisher: Publisher
  readonly reached: (step: Step) => void
  readonly moments: Moments
  /** Deliveries that are attempted, and bytes of their events' bodies. */
  readonly attempted: { deliveries: number; bytes: number }
}

/** The way of one event to the endpoints of its plan. A class, for there is one for each event. */
class FanOut implements Momentary {
  before: Momentary | undefined
  after: Momentary | undefined
  since = 0
  readonly #common: Common
  readonly #routed: Routed
  readonly #work: Plain<Broker>
  readonly #then: Then
  /** Those that have no delivery, as far as is known; made when there is one. */
  #without: Map<string, Lack> | undefined
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

  constructor(common: Common, routed: Routed, work: Plain<Broker>, then: Then) {
    this.#common = common
    this.#routed = routed
    this.#work = work
    this.#then = then
  }

  /** Goes on with it, as far as may be done now. */
  advance(): void {
    const { keys, telling } = this.#routed
    const { event, plan } = telling
    while (this.#isAsUsual && this.#storing + this.#attempting - this.#lasting < fanOut) {
      const planned = plan.endpoints[this.#next]
      if (planned === undefined) break
      const key = keys[this.#next++] ?? endpointKey(event.tenant, planned.id)
      if (!this.#attempt(planned, key)) this.#storeUntried(planned)
    }
    if (this.#storing + this.#attempting > 0) return
    if (this.#isAsUsual) this.#then.done()
    else this.#then.otherwise(this.#soFar())
  }

  get areBegun(): boolean {
    return this.#inLine === 0
  }

  lasts(): void {
    const { telling } = this.#routed
    this.#isYoung = false
    this.#lasting = this.#attempting
    if (!telling.isTold)
      this.#tells = setInterval(() => this.#work.step(() => telling.tell()), untold)
    this.#then.lasts()
    this.#work.step(() => this.advance())
  }

  /** The request of one that is attempted goes out. */
  goesOut(): void {
    this.#inLine--
  }

  /** One that was attempted has come to an end. */
  ended(planned: Planned, end: StraightEnd, wentOut: boolean): void {
    const { began, telling } = this.#routed
    this.#leave(wentOut)
    this.#work.step(() => {
      // Meanwhile another router may have stored it, and the broker have forgotten that.
      const isUnsure = end._tag === "Failed" && elapsedMs() - began > this.#common.options.patience
      if (end._tag === "Unknown" || isUnsure || telling.isUnsure) this.#lack(planned, "unknown")
      else if (end._tag === "Failed") {
        this.#failed ??= new Map()
        this.#failed.set(planned.id, end.progress)
        this.#store(planned, end.progress)
      } else if (end._tag === "Untried") this.#storeUntried(planned)
      this.advance()
    })
  }

  get #isAsUsual(): boolean {
    return this.#without === undefined && !this.#isLate && !this.#routed.telling.isUnsure
  }

  /** Nothing is stored that rests upon a plan which the history does not have. */
  #storeUntried(planned: Planned): void {
    const { telling } = this.#routed
    if (telling.isTold) {
      this.#store(planned, untried)
      return
    }
    this.#storing++
    telling.ask(() =>
      this.#work.step(() => {
        this.#storing--
        if (telling.isUnsure) this.#lack(planned, "unknown")
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
    if (attempted.deliveries >= mostStraight || attempted.bytes >= options.bytes) return false
    let isTaken = false
    this.#begin()
    try {
      const straight = new FromEvent(this, this.#routed, planned, key)
      isTaken = options.owned.attempt(partitionOfKey(key, options.partitions), straight)
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
    const { message, telling } = this.#routed
    const delivery = deliveryOf(telling.event, planned, progress)
    const partition = partitionOf(delivery.tenant, delivery.endpoint, options.partitions)
    this.#storing++
    const ended = (why?: Lack) => this.#stored(planned, why)
    const keep = () => options.owned.keep(partition, { delivery, body: message.data, ended })
    if (progress === untried && keep()) return
    const { headers, subject } = messageOf(names, partition, delivery)
    publisher.send(subject, message.data, headers, (result) =>
      ended(result instanceof PublishError ? result : undefined)
    )
  }

  #stored(planned: Planned, why: Lack | undefined): void {
    const { options, reached } = this.#common
    this.#work.step(() => {
      this.#storing--
      if (why !== undefined) this.#lack(planned, why)
      else reached("delivery-stored")
      this.#isLate ||= elapsedMs() - this.#routed.began > options.patience
      this.advance()
    })
  }

  #lack({ id }: Planned, why: Lack): void {
    this.#without ??= new Map()
    this.#without.set(id, why)
  }

  #soFar(): SoFar {
    const { began, telling } = this.#routed
    const { event, plan, stored } = telling
    if (stored === undefined) return { known: undefined, began }
    const ids = plan.endpoints.slice(0, this.#next).map(({ id }) => id)
    const without = [...(this.#without ?? [])]
    const sent = new Set(ids.filter((id) => this.#without?.has(id) !== true))
    const unsure = without.filter(([, why]) => why === "unknown" || mayBeStored(why))
    const failed = this.#failed ?? new Map()
    const known = { ...nothing(event), parts: [stored], sent, failed }
    return { known, tried: new Set(unsure.map(([id]) => id)), began }
  }
}

/** The delivery of an event to one endpoint, attempted from the event. */
class FromEvent implements Straight {
  readonly delivery: Delivery
  readonly key: string
  readonly body: Uint8Array
  readonly untold: Telling | undefined
  readonly #of: FanOut
  readonly #planned: Planned
  #isBegun = false

  constructor(of: FanOut, { message, telling }: Routed, planned: Planned, key: string) {
    this.#of = of
    this.#planned = planned
    this.delivery = deliveryOf(telling.event, planned, untried)
    this.key = key
    this.body = message.data
    this.untold = telling.isTold ? undefined : telling
  }

  begun(): void {
    this.#isBegun = true
    this.#of.goesOut()
  }

  ended(end: StraightEnd): void {
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
  const reached = yield* Checkpoint
  const moments = new Moments()
  yield* Effect.addFinalizer(() => Effect.sync(() => moments.close()))
  const attempted = { deliveries: 0, bytes: 0 }
  const common: Common = { options, names, publisher, reached, moments, attempted }
  return (routed: Routed, work: Plain<Broker>, then: Then) =>
    new FanOut(common, routed, work, then).advance()
})
