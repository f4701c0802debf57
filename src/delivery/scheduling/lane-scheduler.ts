import { IntrusiveList } from "../../broker/intrusive-list.ts"
import { Turns } from "../../broker/turns.ts"
import { tenantOfKey } from "../../domain/endpoint.ts"
import type { HostPlace } from "../../endpoints/host-limits.ts"
import { timers } from "../../time/timers.ts"
import type { CapacityPool } from "./capacity-pool.ts"
import { CapacityWaiters } from "./capacity-pool.ts"
import type { LanePosition } from "./lane.ts"
import { Lane, maxLineLength, SlowEndpoints, speedOf } from "./lane.ts"
import type { SpeedClass, TenantCapacity } from "./tenant-capacity.ts"
import { slowFromMs } from "./tenant-capacity.ts"

/**
 * How long a request of an endpoint that was removed or disabled may take in all, ms: an answer that
 * comes as soon as usual still counts.
 */
const maxObsoleteMs = 5_000

/**
 * How long a delivery of a tenant that crowds the queue may wait in line, or count against what may
 * be pulled, ms.
 */
const maxCrowdingMs = 100
/** Lanes, and deliveries in their lines, that are looked at each time for what is due. */
const maxLooks = 1_000
/** How many times an endpoint's limit a refill from its backlog brings its line to. */
const refills = 8
/** Bytes of bodies that are read for an endpoint at a time while memory is short: more only for one. */
const tightReadBytes = 4 * 1024
/** How long a tenant counts as crowding after it was seen to, ms. */
const crowdingKeptMs = 1_000

/** What lanes need to know of an endpoint, and what they do with a delivery. */
interface LaneOptions<A> {
  /** Capacity shared with the lanes of other partitions. */
  readonly pool: CapacityPool
  /** Returns how many requests may be in flight now; 0 while the endpoint accepts nothing. */
  readonly limit: (key: string) => number
  /**
   * True where one more request may begin now. That request is then counted against the endpoint's
   * rate, and against the cap of its host until it leaves.
   */
  readonly admit: (key: string, place: HostPlace) => boolean
  /** Returns how many requests the endpoint's rate allows shortly. */
  readonly rateBudget: (key: string) => number
  /** True while the endpoint's backlog has messages: new deliveries go behind them. */
  readonly hasBacklog: (key: string) => boolean
  /**
   * True while too much waits for an endpoint's retries: first attempts wait in its backlog, and
   * retries, which free capacity, do not go behind them. (Default: never)
   */
  readonly isHeld?: (key: string) => boolean
  /** True where an attempt was made before. Asked only while an endpoint is held. */
  readonly isRetry?: (item: A) => boolean
  /** Returns the size of the body, bytes. */
  readonly bytes: (item: A) => number
  /** True where the deadline has passed: the delivery ends without a request. */
  readonly isOver: (item: A) => boolean
  /**
   * Begins the work on an item whose turn it is. The caller must call `leave` when the work is
   * done.
   */
  readonly start: (item: A, position: LanePosition<A>) => void
  /**
   * Called once when a task is slow, or its endpoint is known to be slow. Not called for tasks from
   * the backlog.
   */
  readonly becameSlow: (item: A) => void
  /** Ends the request of a task in flight, if its endpoint is removed or disabled. */
  readonly endObsolete: (item: A) => void
  /** Returns to its source a task that cannot wait in memory. */
  readonly defer: (item: A) => void
  /** Called when an endpoint's backlog may have capacity again. */
  readonly onCapacity: (key: string) => void
  /** While true, nothing begins: new deliveries wait in line until `clear`. */
  readonly closed: () => boolean
  /** How long a delivery from the queue may wait in line, ms. */
  readonly maxQueueMs: number
  /**
   * Returns the tenant whose deliveries take up most of what may be pulled from the queue, and so
   * hold up those of other tenants; undefined for none.
   */
  readonly crowdedBy: () => string | undefined
}

/** An endpoint's requests in flight, and deliveries that wait in memory. */
export interface LaneCounts {
  readonly inFlight: number
  readonly inLine: number
}

/** Memory that is reserved for a read. */
interface ReadReservation {
  readonly bytes: number
  readonly giveBack: () => void
}

/**
 * The lanes of one partition. Each endpoint has as many requests in flight as its limit allows, and
 * a short line in memory for deliveries beyond it. A delivery that finds no position in line, or has
 * waited too long, returns to its source, so that no endpoint uses up the capacity of others.
 */
export class LaneScheduler<A> {
  readonly #lanes = new Map<string, Lane<A>>()
  /** Positions in flight that are not slow so far, in the order in which they began. */
  readonly #young = new IntrusiveList<LanePosition<A>>()
  /** Positions in flight that count as slow. */
  readonly #aged = new IntrusiveList<LanePosition<A>>()
  /** Endpoints that may be gone, with requests in flight. */
  readonly #unavailable = new Set<string>()
  readonly #slow = new SlowEndpoints()
  /** The tenant that crowds the queue, and until when it counts as doing so (monotonic ms). */
  #crowding: { readonly tenant: string; readonly until: number } | undefined
  readonly #waiters: CapacityWaiters
  readonly #options: LaneOptions<A>
  /** The lanes that are looked at next. */
  readonly #turns = new Turns(() => this.#lanes.values())
  readonly #advanceLane = (lane: Lane<A>, most: number) => this.#advance(lane, most)

  constructor(options: LaneOptions<A>) {
    this.#options = options
    this.#waiters = new CapacityWaiters(options.onCapacity)
  }

  /** Begins a delivery from the queue, puts it in line, or returns it to its source. */
  enter(key: string, item: A): void {
    const { defer, hasBacklog, isRetry, limit } = this.#options
    const lane = this.#laneOf(key)
    const most = limit(key)
    const isBehind = this.#isHeld(key) ? isRetry?.(item) !== true : hasBacklog(key)
    if (isBehind || most === 0 || this.#isTooLong(lane, most)) {
      defer(item)
      this.#dropIfIdle(lane)
      return
    }
    this.#queue(lane, item, false)
  }

  /**
   * True where one more delivery would begin promptly: the endpoint is quick, fewer than `most` are
   * in flight or in line, and there is capacity for its body, should it turn out to be slow.
   */
  isQuick(key: string, most: number): boolean {
    if (this.#isHeld(key)) return false
    const lane = this.#lanes.get(key)
    const isQuick =
      lane === undefined
        ? !this.#slow.has(key)
        : lane.speed === "quick" && lane.hasPlace(most - lane.line.size)
    const { pool } = this.#options
    return isQuick && (pool.isAmple || this.#capacityOf(key, lane).bytesFor("quick") > 0)
  }

  /** Puts a delivery from the backlog in line. It may wait there without a time limit. */
  refill(key: string, item: A): void {
    this.#queue(this.#laneOf(key), item, true)
  }

  /**
   * Returns how many deliveries to read from the backlog now. They are read one at a time for a
   * slow endpoint. While memory is short, they are read as its line is empty: one, or several small
   * ones.
   *
   * @param bytes size of their bodies, at most. (Default: not known yet)
   */
  readBudget(key: string, bytes = tightReadBytes): number {
    const { closed, limit, rateBudget } = this.#options
    const most = closed() || this.#isHeld(key) ? 0 : limit(key)
    if (most === 0) return 0
    const lane = this.#lanes.get(key)
    const { inFlight, inLine } = this.countsOf(key)
    const speed = this.#speedOf(key, lane)
    const capacity = this.#capacityOf(key, lane)
    if (capacity.bytesFor(speed) === 0) return 0
    const isSlow = speed === "slow"
    if (isSlow || capacity.isTight) {
      if (inLine > 0 || inFlight >= most) return 0
      const small = Math.floor(tightReadBytes / bytes)
      return isSlow ? 1 : Math.max(1, Math.min(most, rateBudget(key), small))
    }
    // A read costs as much for one delivery as for many.
    if (inLine > most) return 0
    return Math.max(0, Math.min(refills * most, maxLineLength, rateBudget(key)) - inLine)
  }

  /** Asks to be called when there is body capacity again, if the endpoint lacks it. */
  awaitCapacity(key: string): void {
    const lane = this.#lanes.get(key)
    this.#waiters.await(key, this.#capacityOf(key, lane), this.#speedOf(key, lane))
  }

  /** Reserves capacity for bodies that are being read from the backlog, up to `most` bytes. */
  reserve(key: string, most: number): ReadReservation {
    const { pool } = this.#options
    const lane = this.#lanes.get(key)
    const speed = this.#speedOf(key, lane)
    const capacity = this.#capacityOf(key, lane)
    const use = { requests: 0, bytes: 0, slow: speed === "slow" }
    capacity.take(use, 0, Math.min(most, capacity.bytesFor(speed)))
    return { bytes: use.bytes, giveBack: () => pool.giveBack(capacity, use) }
  }

  /** Notes how long an attempt took, answered or not, ms. */
  answered(key: string, ms: number): void {
    this.#lanes.get(key)?.answered(ms)
  }

  /** Called when a request has succeeded, before that is recorded: the next in line may begin. */
  recording(position: LanePosition<A>): void {
    const { lane } = position
    position.isRecording = true
    lane.recording++
    this.#leaveHost(position)
    this.#advance(lane)
  }

  /** Called when work in flight is done: the next in line begins. */
  leave(position: LanePosition<A>): void {
    const { lane } = position
    if (position.isRecording) lane.recording--
    if (position.slow) {
      this.#aged.remove(position)
      lane.slowInFlight--
    } else this.#young.remove(position)
    lane.inFlight--
    if (lane.inFlight === 0) lane.capacity.lane(-1)
    this.#options.pool.giveBack(lane.capacity, position)
    this.#leaveHost(position)
    this.#advance(lane)
  }

  /** Called for an endpoint that was removed, disabled, suspended or replaced. */
  becameUnavailable(key: string): void {
    if (this.countsOf(key).inFlight > 0) this.#unavailable.add(key)
  }

  /** Begins what may begin for one endpoint, whose limit may have changed, or for all. */
  advance(key?: string): void {
    const lanes = key === undefined ? [...this.#lanes.values()] : [this.#lanes.get(key)]
    for (const lane of lanes) if (lane !== undefined) this.#advance(lane)
  }

  /** Does what is due by time. Called at a fixed interval. */
  tick(): void {
    const now = timers.monotonicMs()
    this.#noteSlow(now - slowFromMs)
    if (this.#unavailable.size > 0) this.#endObsolete(now - maxObsoleteMs)
    this.#relieve(now)
    this.#lookAtLanes(now)
    this.#slow.tick(now)
    this.#options.pool.next()
  }

  /**
   * Looks at lanes in turn: at all of them, or at as many as have `maxLooks` deliveries in line, and
   * goes on there the next time. Thousands of endpoints that catch up would otherwise take all of the
   * worker's time, whoever else it works for.
   */
  #lookAtLanes(now: number): void {
    let looks = maxLooks
    for (let left = this.#lanes.size; left > 0 && looks > 0; left--) {
      const lane = this.#turns.next()
      if (lane === undefined) return
      looks -= 1 + lane.line.size
      if (lane.line.size > 0) this.#leaveLine(lane, now)
      this.#advance(lane)
    }
  }

  /** Returns an endpoint's requests in flight, and the length of its line. */
  countsOf(key: string): LaneCounts {
    const lane = this.#lanes.get(key)
    return { inFlight: lane?.sending ?? 0, inLine: lane?.line.size ?? 0 }
  }

  /**
   * Finds a task of an endpoint, in its line or in flight. Looks at all that is in flight in the
   * partition: for queries only.
   */
  find(key: string, isIt: (item: A) => boolean): LanePosition<A> | undefined {
    const lane = this.#lanes.get(key)
    for (const list of lane === undefined ? [] : [lane.line, this.#young, this.#aged])
      for (const position of list)
        if (position.lane === lane && isIt(position.item)) return position
    return undefined
  }

  /** Returns the keys of endpoints with a lane. */
  keys(): Iterable<string> {
    return this.#lanes.keys()
  }

  /** Takes all deliveries out of their lines. */
  clear(): Array<A> {
    return [...this.#lanes.values()].flatMap(({ line }) =>
      line.takeAll().map((position) => this.#free(position))
    )
  }

  #leaveHost(position: LanePosition<A>): void {
    const { hostLine, lane } = position
    position.hostLine = undefined
    hostLine?.release(lane)
  }

  #queue(lane: Lane<A>, item: A, isFromBacklog: boolean): void {
    const { bytes } = this.#options
    const slow = lane.speed === "slow"
    const since = timers.monotonicMs()
    const position: LanePosition<A> = {
      item,
      lane,
      isFromBacklog,
      since,
      requests: 0,
      bytes: 0,
      slow,
      hostLine: undefined,
      isRecording: false,
      before: undefined,
      after: undefined
    }
    if (isFromBacklog) lane.capacity.take(position, 0, bytes(item))
    lane.line.add(position)
    this.#advance(lane)
  }

  #laneOf(key: string): Lane<A> {
    const open = this.#lanes.get(key)
    if (open !== undefined) return open
    const capacity = this.#capacityOf(key, undefined)
    capacity.hold(1)
    const lane = new Lane<A>(key, capacity, this.#slow.ewmaMsOf(key), this.#advanceLane)
    this.#slow.forget(key)
    this.#lanes.set(key, lane)
    return lane
  }

  #speedOf(key: string, lane: Lane<A> | undefined): SpeedClass {
    return lane === undefined ? speedOf(this.#slow.ewmaMsOf(key)) : lane.speed
  }

  #capacityOf(key: string, lane: Lane<A> | undefined): TenantCapacity {
    return lane === undefined ? this.#options.pool.of(tenantOfKey(key)) : lane.capacity
  }

  /**
   * Begins deliveries in line. They come before new ones, also where the limit was raised.
   *
   * @param most maximum number that may begin.
   */
  #advance(lane: Lane<A>, most = Number.POSITIVE_INFINITY): void {
    if (this.#options.closed() || lane.advancing) return
    lane.advancing = true
    try {
      this.#beginNext(lane, most)
    } finally {
      lane.advancing = false
    }
    this.#dropIfIdle(lane)
  }

  #beginNext(lane: Lane<A>, most: number): void {
    const { admit, limit, defer } = this.#options
    const { capacity, key } = lane
    const allowed = limit(key)
    if (allowed === 0) for (const position of lane.line.takeAll()) defer(this.#free(position))
    else if (lane.line.size > 0 && this.#isHeld(key)) this.#deferFirstAttempts(lane)
    for (let begun = 0; lane.hasPlace(allowed); begun++) {
      const { first: next } = lane.line
      if (next === undefined) return
      const speed = lane.speed
      if (begun === most || !capacity.mayStart(speed, lane.inFlight, next.isFromBacklog)) {
        capacity.wait(speed, lane.inFlight, lane)
        return
      }
      if (!admit(key, next)) return
      lane.line.remove(next)
      this.#begin(next)
    }
  }

  #begin(position: LanePosition<A>): void {
    const { item, lane } = position
    position.since = timers.monotonicMs()
    if (lane.inFlight === 0) lane.capacity.lane(1)
    lane.inFlight++
    lane.capacity.take(position, 1, 0)
    if (position.slow || lane.speed === "slow") this.#becameSlow(position)
    else this.#young.add(position)
    this.#options.start(item, position)
  }

  /**
   * Counts a position as slow, its body included, and takes it out of the queue's prefetch window.
   */
  #becameSlow(position: LanePosition<A>): void {
    position.lane.capacity.becomesSlow(position)
    position.lane.slowInFlight++
    this.#aged.add(position)
    this.#leaveWindow(position)
  }

  /** Counts a body against the tenant's capacity, and no longer against what may be pulled. */
  #leaveWindow(position: LanePosition<A>): void {
    const { bytes, becameSlow } = this.#options
    const { isFromBacklog, item, lane } = position
    if (isFromBacklog || position.bytes > 0) return
    lane.capacity.take(position, 0, bytes(item))
    becameSlow(item)
  }

  #deferFirstAttempts({ line }: Lane<A>): void {
    const { defer, isRetry } = this.#options
    const first: Array<LanePosition<A>> = []
    for (const position of line) if (isRetry?.(position.item) !== true) first.push(position)
    for (const position of first) {
      line.remove(position)
      defer(this.#free(position))
    }
  }

  #isHeld(key: string): boolean {
    return this.#options.isHeld?.(key) === true
  }

  #isTooLong(lane: Lane<A>, limit: number): boolean {
    return lane.isTooLong(limit, this.#isCrowding(lane) ? 0 : this.#options.maxQueueMs)
  }

  #isCrowding({ capacity }: Lane<A>): boolean {
    return this.#crowding?.tenant === capacity.tenant
  }

  /** Keeps the deliveries of a tenant that crowds the queue from holding up those of others. */
  #relieve(now: number): void {
    const tenant = this.#options.crowdedBy()
    if (tenant !== undefined) this.#crowding = { tenant, until: now + crowdingKeptMs }
    else if (this.#crowding === undefined || this.#crowding.until > now) return
    else this.#crowding = undefined
    for (const position of this.#young) {
      if (position.since > now - maxCrowdingMs) return
      if (this.#isCrowding(position.lane)) this.#leaveWindow(position)
    }
  }

  #noteSlow(before: number): void {
    for (const position of this.#young) {
      if (position.since > before) return
      this.#young.remove(position)
      position.lane.becameSlow()
      this.#becameSlow(position)
    }
  }

  #endObsolete(before: number): void {
    const { endObsolete } = this.#options
    for (const { item, lane, since } of this.#aged)
      if (since <= before && this.#unavailable.has(lane.key)) endObsolete(item)
    for (const key of this.#unavailable)
      if (this.countsOf(key).inFlight === 0) this.#unavailable.delete(key)
  }

  /**
   * Begins deliveries whose deadline has passed, which end without a request. Returns to their
   * source those from the queue that have waited too long.
   */
  #leaveLine(lane: Lane<A>, now: number): void {
    const { isOver, defer } = this.#options
    const maxQueueMs = this.#isCrowding(lane) ? maxCrowdingMs : this.#options.maxQueueMs
    const isLate = (position: LanePosition<A>) =>
      !position.isFromBacklog && now - position.since >= maxQueueMs
    const over: Array<LanePosition<A>> = []
    const late: Array<LanePosition<A>> = []
    for (const position of lane.line) {
      if (isOver(position.item)) over.push(position)
      else if (isLate(position)) late.push(position)
      else continue
      lane.line.remove(position)
    }
    for (const position of over) this.#begin(position)
    for (const position of late) defer(this.#free(position))
  }

  #free(position: LanePosition<A>): A {
    this.#options.pool.giveBack(position.lane.capacity, position)
    return position.item
  }

  #dropIfIdle(lane: Lane<A>): void {
    const { ewmaMs, isIdle, key } = lane
    if (!isIdle || this.#lanes.get(key) !== lane) return
    this.#slow.remember(key, ewmaMs)
    this.#lanes.delete(key)
    lane.capacity.hold(-1)
  }
}
