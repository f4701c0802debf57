/** What a worker holds at most, whatever its endpoints may have. */
export interface CapacityLimits {
  /** Requests under way. */
  readonly requests: number
  /** Bodies read from backlogs, or under way for longer than a moment, in bytes. */
  readonly bytes: number
}

/** What a worker takes on at the same time: requests, and bytes of bodies in memory in all. */
export const defaultLoad = { maxInFlight: 1_024, maxBytes: 128 * 1024 * 1024 }

/** What is known of how long an endpoint takes; one of which nobody knows it counts as quick. */
export type SpeedClass = "quick" | "slow"

/** A lane that waits for room. */
export interface CapacityWaiter {
  /** Its turn: begins one request where it still can, and says whether it did. */
  readonly turn: () => boolean
}

/** Room that is used: requests, and bytes that are counted; and whether by a slow endpoint. */
export interface Reservation {
  requests: number
  bytes: number
  slow: boolean
}

/** An endpoint that takes longer, ms, is slow. */
export const slowFromMs = 1_000
/** What may be used of the requests by those that have one under way already. */
const tightShare = 7 / 8
/** Less is not worth a reading, in bytes. */
const minReadBytes = 64 * 1024
/** Lanes that are offered a turn for one that is given, at most: others come with the next. */
const offers = 8

/**
 * The room of a worker for requests, shared by the lanes of all its partitions. Slow endpoints have
 * half of it at most. Once half is used, a lane that has requests under way gets no more than an equal
 * part, and none of the last eighth: whoever has nothing under way finds room, however many are slow
 * and before anybody knows that they are. Lanes that wait get their turns in order.
 */
export class CapacityPool {
  readonly #size: CapacityLimits
  readonly #used = { requests: 0, bytes: 0 }
  readonly #slow = { requests: 0, bytes: 0 }
  /** Lanes that have requests under way. */
  #lanes = 0
  /** Those that wait: with nothing under way, with something, and slow ones. */
  readonly #waiting = {
    first: new Set<CapacityWaiter>(),
    more: new Set<CapacityWaiter>(),
    slow: new Set<CapacityWaiter>()
  }
  readonly #order = [this.#waiting.first, this.#waiting.more, this.#waiting.slow]
  /** Whose turn comes first. */
  #turns = 0
  #giving = false

  constructor(size: CapacityLimits) {
    this.#size = size
  }

  /**
   * True where one more request may begin, to an endpoint that has so many under way. The body of one
   * for a slow endpoint must have room, too, unless it is counted already.
   */
  mayStart(pace: SpeedClass, inFlight: number, counted: boolean): boolean {
    const { requests } = this.#size
    const { requests: used } = this.#used
    if (pace === "slow" && !counted && this.bytesFor("slow") === 0) return false
    if (used < requests / 2) return true
    if (pace === "slow") return used < tightShare * requests && this.#slow.requests < requests / 2
    if (inFlight === 0) return used < requests
    return used < tightShare * requests && inFlight + 1 <= (tightShare * requests) / this.#lanes
  }

  /** Bytes of bodies that there is room for, 0 where it is not worth it. */
  bytesFor(pace: SpeedClass): number {
    const { bytes } = this.#size
    const left = bytes - this.#used.bytes
    const room = pace === "slow" ? Math.min(left, bytes / 2 - this.#slow.bytes) : left
    return room < minReadBytes ? 0 : Math.floor(room)
  }

  /** True where bodies take up so much that nobody is to have more of them than the next. */
  get isTight(): boolean {
    return this.#used.bytes > this.#size.bytes / 2
  }

  /** A lane begins its first request, or has none under way any more. */
  lane(change: 1 | -1): void {
    this.#lanes += change
  }

  /** Uses more room, until it is given back. */
  take(use: Reservation, requests: number, bytes: number): void {
    use.requests += requests
    use.bytes += bytes
    this.#count(use, requests, bytes)
  }

  /** It turns out to be used by a slow one. */
  becomesSlow(use: Reservation): void {
    if (use.slow) return
    use.slow = true
    this.#slow.requests += use.requests
    this.#slow.bytes += use.bytes
  }

  /** Gives all of it back: it is the next one's. */
  giveBack(use: Reservation): void {
    this.#count(use, -use.requests, -use.bytes)
    use.requests = 0
    use.bytes = 0
    this.next()
  }

  /** Puts a lane in line for room. */
  wait(pace: SpeedClass, inFlight: number, lane: CapacityWaiter): void {
    const { first, more, slow } = this.#waiting
    const line = pace === "slow" ? slow : inFlight === 0 ? first : more
    line.add(lane)
  }

  /** Gives one of those that wait its turn, where there is room for it. */
  next(): void {
    // What begins may end at once, and come here again: its room is for the next call.
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

  /** The first in line that has use for its turn. */
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
