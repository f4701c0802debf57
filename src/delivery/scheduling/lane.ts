import type { Linked } from "../../broker/intrusive-list.ts"
import { IntrusiveList } from "../../broker/intrusive-list.ts"
import type { HostPlace } from "../../endpoints/host-limits.ts"
import { timers } from "../../time/timers.ts"
import type { CapacityWaiter, Reservation, SpeedClass, TenantCapacity } from "./tenant-capacity.ts"
import { slowFromMs } from "./tenant-capacity.ts"

/** Maximum length of the line of an endpoint whose speed is unknown. */
export const maxLineLength = 64

/** Returns the speed class of an endpoint by its moving average, ms; quick where it is unknown. */
export const speedOf = (ewmaMs = 0): SpeedClass => (ewmaMs < slowFromMs ? "quick" : "slow")

/** A position in a lane: first in its line, then in flight. */
export interface LanePosition<A> extends Reservation, HostPlace, Linked<LanePosition<A>> {
  readonly item: A
  readonly lane: Lane<A>
  readonly isFromBacklog: boolean
  /** When it joined the line, and later when it began, ms of the monotonic clock. */
  since: number
  /** True once its request has succeeded, while that is recorded. */
  isRecording: boolean
}

/**
 * Returns how many successes of an endpoint may be being recorded while its next request begins. One
 * after the other stays that. Otherwise a worker that is busy for another tenant, and records each
 * success late, would let an endpoint fall behind that answers at once.
 */
const maxRecording = (limit: number): number => (limit <= 1 ? limit : 8 * limit)

/** One endpoint's requests in flight, and its line: the deliveries that wait in memory. */
export class Lane<A> implements CapacityWaiter {
  readonly key: string
  /** What its tenant may use. */
  readonly capacity: TenantCapacity
  readonly line = new IntrusiveList<LanePosition<A>>()
  inFlight = 0
  /** How many of those in flight have succeeded, which is being recorded. */
  recording = 0
  /** Requests in flight that count as slow. */
  slowInFlight = 0
  /** Moving average of the endpoint's recent request durations, ms. */
  ewmaMs: number | undefined
  /** True while deliveries in line are begun: one that ends at once calls back meanwhile. */
  advancing = false
  readonly #advance: (lane: Lane<A>, most: number) => void

  /** @param advance begins up to `most` deliveries in line. */
  constructor(
    key: string,
    capacity: TenantCapacity,
    ewmaMs: number | undefined,
    advance: (lane: Lane<A>, most: number) => void
  ) {
    this.key = key
    this.capacity = capacity
    this.ewmaMs = ewmaMs
    this.#advance = advance
  }

  /**
   * An endpoint that answers many requests at once and others never has the average of a quick one.
   * It is slow as long as most of its requests in flight are.
   */
  get speed(): SpeedClass {
    return 2 * this.slowInFlight > this.inFlight ? "slow" : speedOf(this.ewmaMs)
  }

  /** Number of requests that are not answered yet. */
  get sending(): number {
    return this.inFlight - this.recording
  }

  /**
   * True where one more request may begin. A success that is being recorded takes no place, but
   * several times as many as there are places hold the lane up: a crash would send them again.
   *
   * @param limit how many requests may be in flight.
   */
  hasPlace(limit: number): boolean {
    return this.sending < limit && this.recording < maxRecording(limit)
  }

  get isIdle(): boolean {
    return this.inFlight === 0 && this.line.size === 0
  }

  /** Called when the pool has capacity for one more request. */
  turn(): boolean {
    const before = this.inFlight
    this.#advance(this, 1)
    return this.inFlight > before
  }

  /** Notes how long an attempt took, ms. */
  answered(ms: number): void {
    this.ewmaMs = this.ewmaMs === undefined ? ms : this.ewmaMs + (ms - this.ewmaMs) / 8
  }

  /** Notes that a request has been in flight for so long that the endpoint counts as slow. */
  becameSlow(): void {
    this.ewmaMs = Math.max(this.ewmaMs ?? 0, slowFromMs)
  }

  /**
   * True where one more delivery would wait too long in line. For a slow endpoint that is so as
   * soon as it would wait at all.
   *
   * @param limit how many requests may be in flight.
   * @param maxQueueMs how long it may wait; 0 where it may not wait at all.
   */
  isTooLong(limit: number, maxQueueMs: number): boolean {
    const { capacity, ewmaMs, inFlight, line, speed } = this
    if (speed === "quick" && maxQueueMs > 0)
      return ewmaMs === undefined
        ? line.size >= maxLineLength
        : (line.size * ewmaMs) / limit > maxQueueMs
    const mayBegin = line.size === 0 && this.hasPlace(limit)
    return !(mayBegin && capacity.mayStart(speed, inFlight, false))
  }
}

/** How long a slow endpoint with nothing in flight is remembered, ms. */
const rememberedMs = 60 * 60_000

/** Slow endpoints with nothing in flight, and how slow each was. */
export class SlowEndpoints {
  readonly #slow = new Map<string, { readonly ewmaMs: number; readonly at: number }>()

  has(key: string): boolean {
    return this.#slow.has(key)
  }

  /** Returns its moving average, ms; undefined for an endpoint that was quick or is unknown. */
  ewmaMsOf(key: string): number | undefined {
    return this.#slow.get(key)?.ewmaMs
  }

  /** Remembers an endpoint's moving average, ms, if it was slow. */
  remember(key: string, ewmaMs: number | undefined): void {
    if (ewmaMs !== undefined && ewmaMs >= slowFromMs)
      this.#slow.set(key, { ewmaMs, at: timers.monotonicMs() })
  }

  /** Forgets an endpoint that has a lane again. */
  forget(key: string): void {
    this.#slow.delete(key)
  }

  /** Forgets endpoints that were not used for an hour. */
  tick(now: number): void {
    for (const [key, { at }] of this.#slow) if (now - at > rememberedMs) this.#slow.delete(key)
  }
}
