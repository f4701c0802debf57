import { stepOf } from "./durations.ts"

/** Number of slices of a window. Counts older than the window are dropped one slice at a time. */
const slices = 10

/** The counts within a window. */
export interface AlertCounts {
  /** Deliveries with their first attempt. */
  readonly tried: number
  /** First attempts with a transient failure. */
  readonly retried: number
  /** Attempts with a permanent failure. */
  readonly refused: number
  readonly delivered: number
  /** Deliveries whose first attempt failed and that have not ended yet. */
  readonly pending: number
  /** Total attempts of the delivered ones. */
  readonly attempts: number
  /** Deliveries that ended without success. */
  readonly dead: number
  /** Histogram of the time from event to success, by step of the scale of durations. */
  readonly times: ReadonlyArray<number>
}

/** The fields that are one number each. */
const counted = ["tried", "retried", "refused", "delivered", "pending", "attempts", "dead"] as const

type Sums = { -readonly [K in (typeof counted)[number]]: number }

/**
 * A class, so that V8 stores all fields in one object. There are many endpoints with little
 * traffic.
 */
class WindowSlice implements Sums {
  /** The slice's number, counted since the epoch. */
  readonly number: number
  tried = 0
  retried = 0
  refused = 0
  delivered = 0
  pending = 0
  attempts = 0
  dead = 0
  /** Step and count in turn. Most endpoints take about the same time each time. */
  times: Array<number> = none

  constructor(number: number) {
    this.number = number
  }

  countTime(step: number): void {
    const { times } = this
    for (let place = 0; place < times.length; place += 2)
      if (times[place] === step) {
        times[place + 1] = (times[place + 1] ?? 0) + 1
        return
      }
    // concat() leaves no spare capacity. A list that is pushed to, or spread, has capacity for 16.
    this.times = times.concat(step, 1)
  }
}

const none: Array<number> = []

const noSums: Sums = {
  tried: 0,
  retried: 0,
  refused: 0,
  delivered: 0,
  pending: 0,
  attempts: 0,
  dead: 0
}

export const noAlertCounts: AlertCounts = { ...noSums, times: [] }

/** An attempt. Times in ms, `at` since the epoch. */
export interface AlertAttempt {
  readonly verdict: "delivered" | "retry" | "fail"
  /** Number within the round, from 1. */
  readonly attempt: number
  readonly at: number
  /** When the first attempt of the round was made; undefined if this is the first. */
  readonly firstAt?: number | undefined
  /** Time since the beginning of the round; undefined if times are not counted. */
  readonly took?: number
}

/**
 * Counts the deliveries of an endpoint or a tenant within a sliding window, accurate to a tenth of
 * its length. The cost does not depend on the number of deliveries, and empty slices cost nothing.
 */
export class AlertWindow {
  /** The window's length, ms. */
  readonly over: number
  /** Slices with at least one count. Unordered, except that the newest slice is last. */
  #slices: ReadonlyArray<WindowSlice> = []

  constructor(over: number) {
    this.over = over
  }

  attempt({ at, attempt, firstAt, took, verdict }: AlertAttempt): void {
    const slice = this.#sliceAt(at)
    const isFirst = attempt === 1
    if (isFirst) slice.tried++
    if (verdict === "delivered") {
      slice.delivered++
      slice.attempts += attempt
      this.#ended(firstAt)
      if (took !== undefined) slice.countTime(stepOf(took))
      return
    }
    if (isFirst) slice.pending++
    if (verdict === "fail") slice.refused++
    else if (isFirst) slice.retried++
  }

  /**
   * Counts a delivery that ended without success. Times in ms since the epoch.
   *
   * @param firstAt when its first attempt was made; undefined if there was none.
   */
  dead(at: number, firstAt?: number): void {
    this.#sliceAt(at).dead++
    this.#ended(firstAt)
  }

  /** Returns the counts of the window that ends at a time (ms since the epoch). */
  read(at: number): AlertCounts {
    const now = this.#numberAt(at)
    const sums = { ...noSums }
    const times: Array<number> = []
    for (const slice of this.#slices) {
      if (slice.number > now || slice.number <= now - slices) continue
      for (const name of counted) sums[name] += slice[name]
      for (let place = 0; place < slice.times.length; place += 2) {
        const step = slice.times[place] ?? 0
        while (times.length <= step) times.push(0)
        times[step] = (times[step] ?? 0) + (slice.times[place + 1] ?? 0)
      }
    }
    return { ...sums, times }
  }

  /** Returns true if all counts are older than the window. */
  isOver(at: number): boolean {
    const oldest = this.#numberAt(at) - slices
    return this.#slices.every(({ number }) => number <= oldest)
  }

  /** Stops counting the delivery as pending: from now on its end counts instead. */
  #ended(firstAt: number | undefined): void {
    if (firstAt === undefined) return
    const number = this.#numberAt(firstAt)
    const slice = this.#find(number)
    // The first attempt may have been made by a former owner, which counted it in its own memory.
    if (slice !== undefined && slice.pending > 0) slice.pending--
  }

  #sliceAt(at: number): WindowSlice {
    const number = this.#numberAt(at)
    const known = this.#find(number)
    if (known !== undefined) return known
    const slice = new WindowSlice(number)
    // Each remainder has one slot, so that a clock set back does not add slices.
    const others = this.#slices.filter((other) => (other.number - number) % slices !== 0)
    this.#slices = others.concat(slice)
    return slice
  }

  #find(number: number): WindowSlice | undefined {
    const last = this.#slices.at(-1)
    return last?.number === number ? last : this.#slices.find((slice) => slice.number === number)
  }

  #numberAt(at: number): number {
    return Math.floor((at * slices) / this.over)
  }
}

/** How the number of waiting deliveries has changed within a window. */
export interface WaitingGrowth {
  readonly by: number
  /** True if more wait than half a window ago. */
  readonly goesOn: boolean
}

/** Records the number of waiting deliveries over time. Times in ms since the epoch. */
export class Growth {
  #looks: Array<{ readonly at: number; readonly waiting: number }> = []

  note(at: number, waiting: number): void {
    this.#looks.push({ at, waiting })
  }

  /**
   * Returns the growth within the window that ends at `at`; undefined if the records do not go back
   * that far.
   */
  within(window: number, at: number): WaitingGrowth | undefined {
    const first = this.#looks.findLastIndex((look) => look.at <= at - window)
    if (first > 0) this.#looks = this.#looks.slice(first)
    const [begin] = this.#looks
    const middle = this.#looks.findLast((look) => look.at <= at - window / 2)
    const now = this.#looks.at(-1)
    if (begin === undefined || middle === undefined || now === undefined) return undefined
    if (begin.at > at - window) return undefined
    return { by: now.waiting - begin.waiting, goesOn: now.waiting > middle.waiting }
  }
}
