/**
 * The lanes of one partition: each endpoint has at most its cap of requests in flight, and a line
 * in memory for those that come too soon. A line is short in time, not in places: what an endpoint
 * cannot take within `patience` goes back, so that it does not use up the partition's room.
 */
export class Lanes<A> {
  readonly #lanes = new Map<string, Lane<A>>()
  readonly #start: (item: A) => void
  readonly #patience: number
  readonly #closed: () => boolean

  /**
   * @param start begins the work on an item whose turn it is; `leave` must follow.
   * @param patience ms in line before `overdue` gives an item back.
   * @param closed once true, nothing is started any more: what comes stands in line until `drain`.
   */
  constructor(start: (item: A) => void, patience: number, closed: () => boolean) {
    this.#start = start
    this.#patience = patience
    this.#closed = closed
  }

  /** Starts the item, or puts it in line while `cap` others of its endpoint are under way. */
  enter(key: string, cap: number, item: A): void {
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      lane = { inFlight: 0, cap, line: [] }
      this.#lanes.set(key, lane)
    }
    lane.cap = cap
    lane.line.push({ item, since: performance.now() })
    this.#advance(lane)
  }

  /** An item is done: the next in line takes its place. */
  leave(key: string): void {
    const lane = this.#lanes.get(key)
    if (lane === undefined) return
    lane.inFlight--
    this.#advance(lane)
    if (lane.inFlight === 0 && lane.line.length === 0) this.#lanes.delete(key)
  }

  /** Those in line come before those that come now, also where the cap has been raised. */
  #advance(lane: Lane<A>): void {
    while (lane.inFlight < lane.cap && !this.#closed()) {
      const next = lane.line.shift()
      if (next === undefined) return
      lane.inFlight++
      this.#start(next.item)
    }
  }

  /** Takes out of their lines those that have waited for longer than the patience. */
  overdue(): Array<A> {
    const before = performance.now() - this.#patience
    const found: Array<A> = []
    for (const lane of this.#lanes.values()) {
      const late = lane.line.findIndex(({ since }) => since > before)
      const count = late === -1 ? lane.line.length : late
      for (const { item } of lane.line.splice(0, count)) found.push(item)
    }
    return found
  }

  /** Takes all out of their lines. */
  drain(): Array<A> {
    return [...this.#lanes.values()].flatMap(({ line }) => line.splice(0).map(({ item }) => item))
  }
}

interface Lane<A> {
  inFlight: number
  cap: number
  readonly line: Array<{ readonly item: A; readonly since: number }>
}
