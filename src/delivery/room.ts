/** What a worker holds at most, whatever its endpoints may have. */
export interface RoomSize {
  /** Requests under way. */
  readonly requests: number
  /** Bodies read from backlogs, or under way for longer than a moment, in bytes. */
  readonly bytes: number
}

/** What a worker takes on at the same time: requests, and bytes of bodies in memory in all. */
export const defaultLoad = { maxInFlight: 1_024, maxBytes: 128 * 1024 * 1024 }

/** What is known of how long an endpoint takes. */
export type Pace = "quick" | "unknown" | "slow"

/** A lane that waits for room. */
export interface Waiting {
  /** Its turn: begins one request where it still can, and says whether it did. */
  readonly turn: () => boolean
}

/** Room that is used: requests, and bytes that are counted; and whether by a slow endpoint. */
export interface Use {
  requests: number
  bytes: number
  slow: boolean
}

/** An endpoint that takes longer, ms, is slow. */
export const slowFrom = 1_000
/** What those of which nobody knows how quick they are may use of it all. */
const most = 7 / 8
/** Less is not worth a reading, in bytes. */
const worthReading = 64 * 1024

/**
 * The room of a worker for requests, shared by the lanes of all its partitions. The slow ones have
 * half of it at most, and those of which nobody knows yet one request each once half is used, and
 * none of the last eighth: so those that are quick find room, however many are slow. Lanes that
 * wait get their turns in order, for each pace by itself.
 */
export class Room {
  readonly #size: RoomSize
  readonly #used = { requests: 0, bytes: 0 }
  readonly #slow = { requests: 0, bytes: 0 }
  readonly #waiting: ReadonlyArray<readonly [Pace, Set<Waiting>]> = [
    ["quick", new Set()],
    ["unknown", new Set()],
    ["slow", new Set()]
  ]
  /** Whose turn comes first. */
  #first = 0

  constructor(size: RoomSize) {
    this.#size = size
  }

  /**
   * True where one more request may begin, to an endpoint that has so many under way.
   *
   * @param counts whether its body counts from then on.
   */
  mayStart(pace: Pace, inFlight: number, counts: boolean): boolean {
    if (counts && this.bytesFor(pace) === 0) return false
    const { bytes, requests } = this.#size
    const used = this.#used
    if (used.requests < requests / 2 && used.bytes < bytes / 2) return true
    switch (pace) {
      case "quick":
        return used.requests < requests
      case "unknown":
        return used.requests < most * requests && inFlight === 0
      case "slow":
        return used.requests < requests && this.#slow.requests < requests / 2
    }
  }

  /** Bytes of bodies that there is room for, 0 where it is not worth it. */
  bytesFor(pace: Pace): number {
    const { bytes } = this.#size
    const left = (pace === "unknown" ? most : 1) * bytes - this.#used.bytes
    const room = pace === "slow" ? Math.min(left, bytes / 2 - this.#slow.bytes) : left
    return room < worthReading ? 0 : room
  }

  /** Uses more room, until it is given back. */
  take(use: Use, requests: number, bytes: number): void {
    use.requests += requests
    use.bytes += bytes
    this.#count(use, requests, bytes)
  }

  /** It turns out to be used by a slow one. */
  slows(use: Use): void {
    if (use.slow) return
    use.slow = true
    this.#slow.requests += use.requests
    this.#slow.bytes += use.bytes
  }

  /** Gives all of it back: it is the next one's. */
  give(use: Use): void {
    this.#count(use, -use.requests, -use.bytes)
    use.requests = 0
    use.bytes = 0
    this.next()
  }

  /** Puts a lane in line for room, where it does not stand there already. */
  wait(pace: Pace, lane: Waiting): void {
    for (const [of, lanes] of this.#waiting) if (of === pace) lanes.add(lane)
  }

  /** Gives one of those that wait its turn, where there is room for it. */
  next(): void {
    for (let tried = 0; tried < this.#waiting.length; tried++) {
      const waiting = this.#waiting[this.#first++ % this.#waiting.length]
      if (waiting !== undefined && this.#turnOf(...waiting)) return
    }
  }

  /** The first of a pace that has use for its turn. */
  #turnOf(pace: Pace, lanes: Set<Waiting>): boolean {
    let left = lanes.size
    for (const lane of lanes) {
      if (left-- === 0 || !this.mayStart(pace, 0, false)) return false
      lanes.delete(lane)
      if (lane.turn()) return true
    }
    return false
  }

  #count({ slow }: Use, requests: number, bytes: number): void {
    this.#used.requests += requests
    this.#used.bytes += bytes
    if (!slow) return
    this.#slow.requests += requests
    this.#slow.bytes += bytes
  }
}
