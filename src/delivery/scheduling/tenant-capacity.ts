import { OrderedSet } from "../../broker/ordered-map.ts"
import type { TenantLoad } from "../../metrics/worker-metrics.ts"
import { allowanceOf } from "../../policy/shares.ts"

/** Limits of one worker, whatever its endpoints' limits. */
export interface CapacityLimits {
  /** Requests in flight. */
  readonly requests: number
  /** Bodies read from backlogs, or of slow requests, in bytes. */
  readonly bytes: number
}

/** The speed of an endpoint. An endpoint of unknown speed counts as quick. */
export type SpeedClass = "quick" | "slow"

/** A lane that waits for capacity. */
export interface CapacityWaiter {
  /**
   * Called when it is the lane's turn. Begins one request if the lane still can, and returns
   * whether it did.
   */
  readonly turn: () => boolean
}

/** Capacity in use: requests, counted bytes, and whether it counts as slow. */
export interface Reservation {
  requests: number
  bytes: number
  slow: boolean
}

/** What all tenants share. */
export interface CapacityShares {
  readonly size: CapacityLimits
  readonly used: { requests: number; bytes: number }
  /** Number of tenants that have requests in flight or wait. */
  active: number
  /** True where every tenant may have more bytes. */
  readonly isAmple: boolean
  /**
   * Returns the number of tenants among which the capacity is divided.
   *
   * @param isActive true where the tenant that asks is counted in `active`.
   */
  sharersWith(isActive: boolean): number
  /** Puts a tenant in line, whose lanes wait. */
  awaitTurn(tenant: TenantCapacity): void
}

/** An endpoint whose requests take at least this long is slow, ms. */
export const slowFromMs = 1_000
/** Share of a tenant's requests that lanes with requests in flight may use. */
const tightShare = 7 / 8
/** Minimum capacity for a read, in bytes. */
const minReadBytes = 64 * 1024
/** Maximum lanes that are offered a turn until one takes it: the others follow next time. */
const maxOffers = 8

/**
 * One tenant's part of a worker's capacity, divided among its endpoints. Slow endpoints get at most
 * half of it. Once half is in use, a lane with requests in flight gets at most an equal share, and
 * none of the last eighth. So a lane with nothing in flight finds capacity, however many endpoints
 * of the tenant are slow, and even before they are known to be slow. Waiting lanes get their turns
 * in order.
 */
export class TenantCapacity {
  readonly tenant: string
  readonly slow = { requests: 0, bytes: 0 }
  readonly #shares: CapacityShares
  readonly #used = { requests: 0, bytes: 0 }
  /** Number of lanes with requests in flight. */
  #lanes = 0
  /** Number of those who keep this object. */
  #holders = 0
  #isActive = false
  /** Waiting lanes: with nothing in flight, with requests in flight, and slow ones. */
  readonly #first = new OrderedSet<CapacityWaiter>()
  readonly #more = new OrderedSet<CapacityWaiter>()
  readonly #slowLine = new OrderedSet<CapacityWaiter>()
  /** With the least that a lane in each of them needs to begin. */
  readonly #order = [
    { line: this.#first, speed: "quick", inFlight: 0 },
    { line: this.#more, speed: "quick", inFlight: 1 },
    { line: this.#slowLine, speed: "slow", inFlight: 0 }
  ] as const
  /** Index of the line whose turn comes next, counted up. */
  #turns = 0

  constructor(tenant: string, shares: CapacityShares) {
    this.tenant = tenant
    this.#shares = shares
  }

  /** Keeps it in memory (1), or no longer (-1). */
  hold(change: 1 | -1): void {
    this.#holders += change
  }

  /** True where nothing is in use, nobody waits, and nobody keeps it. */
  get isIdle(): boolean {
    return this.#holders === 0 && !this.#isActive && this.#used.bytes === 0
  }

  get isWaiting(): boolean {
    return this.#first.size + this.#more.size + this.#slowLine.size > 0
  }

  get load(): TenantLoad {
    return {
      tenant: this.tenant,
      requests: this.#used.requests,
      waiting: this.#first.size + this.#more.size + this.#slowLine.size
    }
  }

  /**
   * True where one more request may begin to an endpoint with `inFlight` requests. Its body needs
   * capacity too, unless it is `counted` already: that of a quick endpoint counts if the request
   * turns out to be slow.
   */
  mayStart(speed: SpeedClass, inFlight: number, counted: boolean): boolean {
    if (!counted && !(speed === "quick" && this.#shares.isAmple) && this.bytesFor(speed) === 0)
      return false
    const { requests: own } = this.#used
    const allowed = this.#allowedRequests
    if (own < allowed / 2) return true
    if (speed === "slow") return own < tightShare * allowed && this.slow.requests < allowed / 2
    if (inFlight === 0) return own < allowed
    return own < tightShare * allowed && inFlight + 1 <= (tightShare * allowed) / this.#lanes
  }

  /** Returns the capacity for bodies in bytes; 0 where it is too little for a read. */
  bytesFor(speed: SpeedClass): number {
    const allowed = this.#allowedBytes
    const left = allowed - this.#used.bytes
    const free = speed === "slow" ? Math.min(left, allowed / 2 - this.slow.bytes) : left
    return free < minReadBytes ? 0 : Math.floor(free)
  }

  /**
   * True where bodies use more than half of the capacity: each lane then reads one delivery at a
   * time.
   */
  get isTight(): boolean {
    return this.#used.bytes > this.#allowedBytes / 2
  }

  /** Called when a lane begins its first request in flight (1), or ends its last (-1). */
  lane(change: 1 | -1): void {
    this.#lanes += change
  }

  /** Adds to a reservation, until it is given back. */
  take(use: Reservation, requests: number, bytes: number): void {
    use.requests += requests
    use.bytes += bytes
    this.#count(use, requests, bytes)
  }

  /** Counts a reservation as slow. */
  becomesSlow(use: Reservation): void {
    if (use.slow) return
    use.slow = true
    this.slow.requests += use.requests
    this.slow.bytes += use.bytes
  }

  /** Takes back all of a reservation. The pool then gives a turn (`CapacityPool.giveBack`). */
  giveBack(use: Reservation): void {
    this.#count(use, -use.requests, -use.bytes)
    use.requests = 0
    use.bytes = 0
  }

  /** Puts a lane in line for capacity. */
  wait(speed: SpeedClass, inFlight: number, lane: CapacityWaiter): void {
    const line = speed === "slow" ? this.#slowLine : inFlight === 0 ? this.#first : this.#more
    line.add(lane)
    this.#noteActive()
    this.#shares.awaitTurn(this)
  }

  /** Gives a waiting lane its turn. Returns whether one took it. */
  giveTurn(): boolean {
    if (this.#used.requests >= this.#allowedRequests) return false
    for (let tried = 0; tried < this.#order.length; tried++) {
      const next = this.#order[this.#turns++ % this.#order.length]
      if (next === undefined || !this.mayStart(next.speed, next.inFlight, true)) continue
      if (this.#turnOf(next.line)) return true
    }
    this.#noteActive()
    return false
  }

  /** Offers a turn to the lanes of a line in order, until one takes it. */
  #turnOf(line: OrderedSet<CapacityWaiter>): boolean {
    let left = Math.min(line.size, maxOffers)
    while (left-- > 0) {
      const lane = line.takeOldest()
      if (lane === undefined) return false
      if (lane.turn()) return true
    }
    return false
  }

  get #allowedRequests(): number {
    const { size, used } = this.#shares
    const sharers = this.#shares.sharersWith(this.#isActive)
    return allowanceOf(this.#used.requests, used.requests, sharers, size.requests)
  }

  get #allowedBytes(): number {
    const { size, used } = this.#shares
    const sharers = this.#shares.sharersWith(this.#isActive)
    return allowanceOf(this.#used.bytes, used.bytes, sharers, size.bytes)
  }

  #count({ slow }: Reservation, requests: number, bytes: number): void {
    const { used } = this.#shares
    used.requests += requests
    used.bytes += bytes
    this.#used.requests += requests
    this.#used.bytes += bytes
    if (slow) {
      this.slow.requests += requests
      this.slow.bytes += bytes
    }
    this.#noteActive()
  }

  #noteActive(): void {
    const isActive = this.#used.requests > 0 || this.isWaiting
    if (isActive === this.#isActive) return
    this.#isActive = isActive
    this.#shares.active += isActive ? 1 : -1
  }
}
