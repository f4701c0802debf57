/** Limits of one worker, whatever its endpoints' limits. */
export interface CapacityLimits {
  /** Requests in flight. */
  readonly requests: number
  /** Bodies read from backlogs, or of slow requests, in bytes. */
  readonly bytes: number
}

/** Default limits of a worker: requests in flight, and bytes of bodies in memory. */
export const defaultLoad = { maxInFlight: 1_024, maxBytes: 128 * 1024 * 1024 }

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

/** Capacity in use: requests, counted bytes, and whether a slow endpoint uses it. */
export interface Reservation {
  requests: number
  bytes: number
  slow: boolean
}

/** An endpoint whose requests take at least this long is slow, ms. */
export const slowFromMs = 1_000
/** Share of the requests that lanes with requests in flight may use. */
const tightShare = 7 / 8
/** Minimum capacity for a read, in bytes. */
const minReadBytes = 64 * 1024
/**
 * Maximum lanes that are offered a turn until one takes it: the others follow with the next turn.
 */
const offers = 8

/**
 * A worker's capacity for requests, shared by the lanes of all its partitions. Slow endpoints get
 * at most half of it. Once half is in use, a lane with requests in flight gets at most an equal
 * share, and none of the last eighth. So a lane with nothing in flight finds capacity, however many
 * endpoints are slow, and even before they are known to be slow. Waiting lanes get their turns in
 * order.
 */
export class CapacityPool {
  readonly #size: CapacityLimits
  readonly #used = { requests: 0, bytes: 0 }
  readonly #slow = { requests: 0, bytes: 0 }
  /** Number of lanes with requests in flight. */
  #lanes = 0
  /** Waiting lanes: with nothing in flight, with requests in flight, and slow ones. */
  readonly #waiting = {
    first: new Set<CapacityWaiter>(),
    more: new Set<CapacityWaiter>(),
    slow: new Set<CapacityWaiter>()
  }
  readonly #order = [this.#waiting.first, this.#waiting.more, this.#waiting.slow]
  /** Index of the line whose turn comes next, counted up. */
  #turns = 0
  #giving = false

  constructor(size: CapacityLimits) {
    this.#size = size
  }

  /**
   * True where one more request may begin to an endpoint with `inFlight` requests. For a slow
   * endpoint, its body needs capacity too, unless it is `counted` already.
   */
  mayStart(speed: SpeedClass, inFlight: number, counted: boolean): boolean {
    const { requests } = this.#size
    const { requests: used } = this.#used
    if (speed === "slow" && !counted && this.bytesFor("slow") === 0) return false
    if (used < requests / 2) return true
    if (speed === "slow") return used < tightShare * requests && this.#slow.requests < requests / 2
    if (inFlight === 0) return used < requests
    return used < tightShare * requests && inFlight + 1 <= (tightShare * requests) / this.#lanes
  }

  /** Returns the capacity for bodies in bytes; 0 where it is too little for a read. */
  bytesFor(speed: SpeedClass): number {
    const { bytes } = this.#size
    const left = bytes - this.#used.bytes
    const free = speed === "slow" ? Math.min(left, bytes / 2 - this.#slow.bytes) : left
    return free < minReadBytes ? 0 : Math.floor(free)
  }

  /** Requests in flight, and how many may be. */
  get requests(): { readonly inFlight: number; readonly max: number } {
    return { inFlight: this.#used.requests, max: this.#size.requests }
  }

  /**
   * True where bodies use more than half of the capacity: each lane then reads one delivery at a
   * time.
   */
  get isTight(): boolean {
    return this.#used.bytes > this.#size.bytes / 2
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

  /** Counts a reservation as used by a slow endpoint. */
  becomesSlow(use: Reservation): void {
    if (use.slow) return
    use.slow = true
    this.#slow.requests += use.requests
    this.#slow.bytes += use.bytes
  }

  /** Gives back all of a reservation, and offers the capacity to the next lane. */
  giveBack(use: Reservation): void {
    this.#count(use, -use.requests, -use.bytes)
    use.requests = 0
    use.bytes = 0
    this.next()
  }

  /** Puts a lane in line for capacity. */
  wait(speed: SpeedClass, inFlight: number, lane: CapacityWaiter): void {
    const { first, more, slow } = this.#waiting
    const line = speed === "slow" ? slow : inFlight === 0 ? first : more
    line.add(lane)
  }

  /** Gives a waiting lane its turn, if there is capacity. */
  next(): void {
    // A request that begins may end at once and call this again: the next call uses that capacity.
    if (this.#giving) return
    this.#giving = true
    try {
      for (let tried = 0; tried < this.#order.length; tried++) {
        const line = this.#order[this.#turns++ % this.#order.length]
        if (line !== undefined && this.#turnOf(line)) return
      }
    } finally {
      this.#giving = false
    }
  }

  /** Offers a turn to the lanes of a line in order, until one takes it. */
  #turnOf(line: Set<CapacityWaiter>): boolean {
    let left = Math.min(line.size, offers)
    for (const lane of line) {
      if (left-- === 0 || this.#used.requests >= this.#size.requests) return false
      line.delete(lane)
      if (lane.turn()) return true
    }
    return false
  }

  #count({ slow }: Reservation, requests: number, bytes: number): void {
    this.#used.requests += requests
    this.#used.bytes += bytes
    if (!slow) return
    this.#slow.requests += requests
    this.#slow.bytes += bytes
  }
}
