/** What lanes need to know of an endpoint, and what they do with a delivery. */
export interface LaneOptions<A> {
  /** Requests that may be under way now; 0 while the endpoint takes nothing. */
  readonly limit: (key: string) => number
  /** True where one more request may begin now, which is then counted against the endpoint's rate. */
  readonly admit: (key: string) => boolean
  /** True while something waits in the endpoint's backlog: what comes now goes behind it. */
  readonly isBehind: (key: string) => boolean
  /** Begins the work on an item whose turn it is; `leave` must follow. */
  readonly start: (item: A) => void
  /** Takes an item back that cannot wait in memory. */
  readonly putOff: (item: A) => void
  /** Once true, nothing is started any more: what comes stands in line until `clear`. */
  readonly closed: () => boolean
  /** How long a delivery from the queue may stand in line, ms. */
  readonly patience: number
}

/** Places in the line of an endpoint of which nobody knows how quick it is. */
const places = 64

/**
 * The lanes of one partition: each endpoint has so many requests in flight as it may have now, and
 * a short line in memory for those that come too soon. What has no place there, or has stood there
 * for too long, is put off, so that no endpoint uses up the room of the others.
 */
export class Lanes<A> {
  readonly #lanes = new Map<string, Lane<A>>()
  readonly #options: LaneOptions<A>

  constructor(options: LaneOptions<A>) {
    this.#options = options
  }

  /** Starts a delivery from the queue, puts it in line, or puts it off. */
  enter(key: string, item: A): void {
    const { isBehind, limit, putOff } = this.#options
    const lane = this.#laneOf(key)
    const most = limit(key)
    if (isBehind(key) || most === 0 || this.#isTooLong(lane, most)) {
      putOff(item)
      this.#dropIfIdle(lane)
      return
    }
    lane.line.push({ item, since: performance.now() })
    this.#advance(lane)
  }

  /** Puts a delivery from the backlog in line, where it may stand for as long as it takes. */
  refill(key: string, item: A): void {
    const lane = this.#laneOf(key)
    lane.line.push({ item, since: Number.POSITIVE_INFINITY })
    this.#advance(lane)
  }

  /** Deliveries that are worth bringing from the backlog now. */
  wants(key: string): number {
    const limit = this.#options.closed() ? 0 : this.#options.limit(key)
    return Math.max(0, Math.min(2 * limit, places) - (this.#lanes.get(key)?.line.length ?? 0))
  }

  /** An item is done, after so many ms: the next in line takes its place. */
  leave(key: string, ms: number): void {
    const lane = this.#lanes.get(key)
    if (lane === undefined) return
    lane.inFlight--
    lane.usual = lane.usual === undefined ? ms : lane.usual + (ms - lane.usual) / 8
    this.#advance(lane)
  }

  /** Looks again at an endpoint whose limit may have changed, or at all. */
  advance(key?: string): void {
    const lanes = key === undefined ? [...this.#lanes.values()] : [this.#lanes.get(key)]
    for (const lane of lanes) if (lane !== undefined) this.#advance(lane)
  }

  /** Puts off those from the queue that have stood in line for too long. */
  overdue(): void {
    const before = performance.now() - this.#options.patience
    for (const lane of this.#lanes.values()) {
      const late = lane.line.filter(({ since }) => since <= before)
      if (late.length === 0) continue
      lane.line = lane.line.filter(({ since }) => since > before)
      for (const { item } of late) this.#options.putOff(item)
    }
  }

  /** Requests under way, of one endpoint or of all. */
  inFlight(key?: string): number {
    if (key !== undefined) return this.#lanes.get(key)?.inFlight ?? 0
    let sum = 0
    for (const lane of this.#lanes.values()) sum += lane.inFlight
    return sum
  }

  /** Takes all out of their lines. */
  clear(): Array<A> {
    return [...this.#lanes.values()].flatMap(({ line }) => line.splice(0).map(({ item }) => item))
  }

  /** Where the last one in line would wait for longer than it may. */
  #isTooLong({ line, usual }: Lane<A>, limit: number): boolean {
    return usual === undefined
      ? line.length >= places
      : (line.length * usual) / limit > this.#options.patience
  }

  #laneOf(key: string): Lane<A> {
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      lane = { key, inFlight: 0, usual: undefined, line: [] }
      this.#lanes.set(key, lane)
    }
    return lane
  }

  /** Those in line come before those that come now, also where the limit has been raised. */
  #advance(lane: Lane<A>): void {
    const { admit, closed, limit, putOff, start } = this.#options
    if (closed()) return
    const most = limit(lane.key)
    if (most === 0) for (const { item } of lane.line.splice(0)) putOff(item)
    while (lane.line.length > 0 && lane.inFlight < most && admit(lane.key)) {
      const next = lane.line.shift()
      if (next === undefined) break
      lane.inFlight++
      start(next.item)
    }
    this.#dropIfIdle(lane)
  }

  #dropIfIdle(lane: Lane<A>): void {
    if (lane.inFlight === 0 && lane.line.length === 0) this.#lanes.delete(lane.key)
  }
}

interface Lane<A> {
  readonly key: string
  inFlight: number
  /** How long a delivery is under way, ms, lately. */
  usual: number | undefined
  line: Array<{ readonly item: A; readonly since: number }>
}
