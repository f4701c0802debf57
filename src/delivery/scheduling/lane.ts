import type { Linked } from "../../broker/intrusive-list.ts"
import { IntrusiveList } from "../../broker/intrusive-list.ts"
import type { CapacityPool, CapacityWaiter, Reservation, SpeedClass } from "./capacity-pool.ts"
import { slowFromMs } from "./capacity-pool.ts"
import { CapacityWaiters } from "./capacity-waiters.ts"
import { SlowEndpoints } from "./slow-endpoints.ts"

/** What lanes need to know of an endpoint, and what they do with a delivery. */
export interface LaneOptions<A> {
  /** Shared with the lanes of other partitions. */
  readonly room: CapacityPool
  /** Requests that may be under way now; 0 while the endpoint takes nothing. */
  readonly limit: (key: string) => number
  /** True where one more request may begin now, which is then counted against the endpoint's rate. */
  readonly admit: (key: string) => boolean
  /** How many requests its rate lets begin within a moment. */
  readonly soon: (key: string) => number
  /** True while something waits in the endpoint's backlog: what comes now goes behind it. */
  readonly isBehind: (key: string) => boolean
  /** The size of its body, bytes. */
  readonly bytes: (item: A) => number
  /** True where its time is over: it ends without a request. */
  readonly isOver: (item: A) => boolean
  /** Begins the work on an item whose turn it is; `leave` must follow. */
  readonly start: (item: A, place: LanePosition<A>) => void
  /** Told once of an item from the queue that is, or will be, under way for longer than a moment. */
  readonly lasts: (item: A) => void
  /** Takes an item back that cannot wait in memory. */
  readonly putOff: (item: A) => void
  /** Told that there may be room again for what waits in an endpoint's backlog. */
  readonly roomFor: (key: string) => void
  /** Once true, nothing is started any more: what comes stands in line until `clear`. */
  readonly closed: () => boolean
  /** How long a delivery from the queue may stand in line, ms. */
  readonly maxQueueMs: number
}

/** A place in a lane, first in its line and then under way. */
export interface LanePosition<A> extends Reservation, Linked<LanePosition<A>> {
  readonly item: A
  readonly lane: Lane<A>
  readonly isFromBacklog: boolean
  /** When it got in line, and then when it began, ms of the monotonic clock. */
  since: number
}

/** An endpoint's requests under way, and what waits for its turn in memory. */
export interface LaneCounts {
  readonly inFlight: number
  readonly inLine: number
}

interface Lane<A> extends CapacityWaiter {
  readonly key: string
  inFlight: number
  /** How long the endpoint takes lately, ms. */
  usual: number | undefined
  readonly line: IntrusiveList<LanePosition<A>>
  /** While those in line are begun: what ends at once comes back meanwhile. */
  advancing: boolean
}

/** Places in the line of an endpoint of which nobody knows how quick it is. */
const places = 64

const paceOf = ({ usual = 0 }: { readonly usual: number | undefined }): SpeedClass =>
  usual < slowFromMs ? "quick" : "slow"

/**
 * The lanes of one partition: each endpoint has so many requests in flight as it may have now, and
 * a short line in memory for those that come too soon. What has no place there, or has stood there
 * for too long, is put off, so that no endpoint uses up the room of the others.
 */
export class LaneScheduler<A> {
  readonly #lanes = new Map<string, Lane<A>>()
  /** Under way for no longer than a moment, in the order in which they began. */
  readonly #young = new IntrusiveList<LanePosition<A>>()
  readonly #slow = new SlowEndpoints()
  readonly #hunger: CapacityWaiters
  readonly #options: LaneOptions<A>

  constructor(options: LaneOptions<A>) {
    this.#options = options
    this.#hunger = new CapacityWaiters(options.room, options.roomFor)
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
    this.#queue(lane, item, false)
  }

  /** True where one more would have its turn in a moment, and fewer than `most` are under way or in line. */
  isQuick(key: string, most: number): boolean {
    const lane = this.#lanes.get(key)
    if (lane === undefined) return !this.#slow.has(key)
    return paceOf(lane) === "quick" && lane.inFlight + lane.line.size < most
  }

  /** Puts a delivery from the backlog in line, where it may stand for as long as it takes. */
  refill(key: string, item: A): void {
    this.#queue(this.#laneOf(key), item, true)
  }

  /**
   * Deliveries that are worth bringing from the backlog now. They are brought one by one for an
   * endpoint that is slow, and for each where memory is short.
   */
  rateBudget(key: string): number {
    const { closed, limit, room, soon } = this.#options
    const most = closed() ? 0 : limit(key)
    const lane = this.#lanes.get(key)
    const { inFlight, inLine } = this.countsOf(key)
    const pace = this.#paceOf(key, lane)
    if (most === 0 || room.bytesFor(pace) === 0) return 0
    if (pace === "slow" || room.isTight) return inLine === 0 && inFlight < most ? 1 : 0
    // Brought by the cap at least, and not one for each that has left.
    if (inLine > most) return 0
    return Math.max(0, Math.min(2 * most, places, soon(key)) - inLine)
  }

  /** Asks to be told when there is room for bodies again, where that is what an endpoint lacks. */
  awaitRoom(key: string): void {
    this.#hunger.await(key, this.#paceOf(key, this.#lanes.get(key)))
  }

  /** Sets room aside for the bodies of what is being brought from the backlog, at most so many bytes. */
  reserve(key: string, most: number): Reservation {
    const { room } = this.#options
    const pace = this.#paceOf(key, this.#lanes.get(key))
    const use = { requests: 0, bytes: 0, slow: pace === "slow" }
    room.take(use, 0, Math.min(most, room.bytesFor(pace)))
    return use
  }

  /** An endpoint has answered, or not, after so many ms. */
  answered(key: string, ms: number): void {
    const lane = this.#lanes.get(key)
    if (lane !== undefined)
      lane.usual = lane.usual === undefined ? ms : lane.usual + (ms - lane.usual) / 8
  }

  /** What was under way is done: the next in line takes its place. */
  leave(place: LanePosition<A>): void {
    const { lane } = place
    const { room } = this.#options
    this.#young.remove(place)
    lane.inFlight--
    if (lane.inFlight === 0) room.lane(-1)
    room.giveBack(place)
    this.#advance(lane)
  }

  /** Looks again at an endpoint whose limit may have changed, or at all. */
  advance(key?: string): void {
    const lanes = key === undefined ? [...this.#lanes.values()] : [this.#lanes.get(key)]
    for (const lane of lanes) if (lane !== undefined) this.#advance(lane)
  }

  /** What time does to lanes: to be called again and again. */
  tick(): void {
    const now = performance.now()
    this.#noteLasting(now - slowFromMs)
    for (const lane of this.#lanes.values()) if (lane.line.size > 0) this.#leaveLine(lane, now)
    this.#slow.tick(now)
    this.advance()
    this.#options.room.next()
  }

  /** An endpoint's requests under way, and what stands in its line. */
  countsOf(key: string): LaneCounts {
    const lane = this.#lanes.get(key)
    return { inFlight: lane?.inFlight ?? 0, inLine: lane?.line.size ?? 0 }
  }

  /** Those that have any, by their keys. */
  keys(): Iterable<string> {
    return this.#lanes.keys()
  }

  /** Takes all out of their lines. */
  clear(): Array<A> {
    return [...this.#lanes.values()].flatMap(({ line }) =>
      line.takeAll().map((place) => this.#free(place))
    )
  }

  #queue(lane: Lane<A>, item: A, isFromBacklog: boolean): void {
    const { bytes, room } = this.#options
    const slow = paceOf(lane) === "slow"
    const since = performance.now()
    const place: LanePosition<A> = {
      item,
      lane,
      isFromBacklog,
      since,
      requests: 0,
      bytes: 0,
      slow,
      before: undefined,
      after: undefined
    }
    if (isFromBacklog) room.take(place, 0, bytes(item))
    lane.line.add(place)
    this.#advance(lane)
  }

  /** Where it would wait for longer than it may: for a slow one that is as soon as it would wait at all. */
  #isTooLong(lane: Lane<A>, limit: number): boolean {
    const { maxQueueMs, room } = this.#options
    const { inFlight, line, usual } = lane
    if (usual === undefined) return line.size >= places
    if (paceOf(lane) === "quick") return (line.size * usual) / limit > maxQueueMs
    const hasPlace = line.size === 0 && inFlight < limit
    return !(hasPlace && room.mayStart("slow", inFlight, false))
  }

  #laneOf(key: string): Lane<A> {
    const known = this.#lanes.get(key)
    if (known !== undefined) return known
    const lane: Lane<A> = {
      key,
      inFlight: 0,
      usual: this.#slow.ewmaMsOf(key),
      line: new IntrusiveList(),
      advancing: false,
      turn: () => {
        const before = lane.inFlight
        this.#advance(lane, 1)
        return lane.inFlight > before
      }
    }
    this.#slow.forget(key)
    this.#lanes.set(key, lane)
    return lane
  }

  #paceOf(key: string, lane: Lane<A> | undefined): SpeedClass {
    return paceOf({ usual: lane === undefined ? this.#slow.ewmaMsOf(key) : lane.usual })
  }

  /**
   * Those in line come before those that come now, also where the limit has been raised.
   *
   * @param most that may begin.
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
    const { admit, limit, putOff, room } = this.#options
    const { key } = lane
    const allowed = limit(key)
    if (allowed === 0) for (const place of lane.line.takeAll()) putOff(this.#free(place))
    for (let begun = 0; lane.inFlight < allowed; begun++) {
      const { first: next } = lane.line
      if (next === undefined) return
      const pace = paceOf(lane)
      if (begun === most || !room.mayStart(pace, lane.inFlight, next.isFromBacklog)) {
        room.wait(pace, lane.inFlight, lane)
        return
      }
      if (!admit(key)) return
      lane.line.remove(next)
      this.#begin(next)
    }
  }

  #begin(place: LanePosition<A>): void {
    const { room, start } = this.#options
    const { item, lane } = place
    place.since = performance.now()
    if (lane.inFlight === 0) room.lane(1)
    lane.inFlight++
    room.take(place, 1, 0)
    if (paceOf(lane) === "slow") this.#lasts(place)
    else this.#young.add(place)
    start(item, place)
  }

  /** It counts with the slow ones, and its body too; its queue need not wait for it. */
  #lasts(place: LanePosition<A>): void {
    const { bytes, lasts, room } = this.#options
    room.becomesSlow(place)
    if (place.isFromBacklog) return
    room.take(place, 0, bytes(place.item))
    lasts(place.item)
  }

  #noteLasting(before: number): void {
    for (const place of this.#young) {
      if (place.since > before) return
      this.#young.remove(place)
      place.lane.usual = Math.max(place.lane.usual ?? 0, slowFromMs)
      this.#lasts(place)
    }
  }

  /** Those whose time is over end, and those from the queue that have stood there for too long are put off. */
  #leaveLine(lane: Lane<A>, now: number): void {
    const { isOver, maxQueueMs, putOff } = this.#options
    const isLate = (place: LanePosition<A>) =>
      !place.isFromBacklog && now - place.since >= maxQueueMs
    const over: Array<LanePosition<A>> = []
    const late: Array<LanePosition<A>> = []
    for (const place of lane.line) {
      if (isOver(place.item)) over.push(place)
      else if (isLate(place)) late.push(place)
      else continue
      lane.line.remove(place)
    }
    for (const place of over) this.#begin(place)
    for (const place of late) putOff(this.#free(place))
  }

  #free(place: LanePosition<A>): A {
    this.#options.room.giveBack(place)
    return place.item
  }

  #dropIfIdle(lane: Lane<A>): void {
    const { inFlight, key, line, usual } = lane
    if (inFlight > 0 || line.size > 0 || this.#lanes.get(key) !== lane) return
    this.#slow.remember(key, usual)
    this.#lanes.delete(key)
  }
}
