import { stepOf } from "./durations.ts"

/** Slices of a window: what is older than the window is forgotten a slice at a time. */
const slices = 10

/** What happened within a window. */
export interface AlertCounts {
  /** Deliveries that were tried for the first time. */
  readonly tried: number
  /** First attempts that failed in a way that another may mend. */
  readonly retried: number
  /** Attempts that were answered with a permanent failure. */
  readonly refused: number
  readonly delivered: number
  /** Deliveries whose first attempt failed, and that have not ended since. */
  readonly pending: number
  /** Attempts that the delivered ones took, all together. */
  readonly attempts: number
  /** Deliveries that ended without success. */
  readonly dead: number
  /** How many of the delivered fell into each step of the scale of durations, from event to success. */
  readonly times: ReadonlyArray<number>
}

/** Of these there is one number each. */
const counted = ["tried", "retried", "refused", "delivered", "pending", "attempts", "dead"] as const

type Sums = { -readonly [K in (typeof counted)[number]]: number }

/** A class, so that all of it is in one piece: of endpoints with little to do there are many. */
class Slice implements Sums {
  /** Which one it is, counted since the epoch. */
  readonly number: number
  tried = 0
  retried = 0
  refused = 0
  delivered = 0
  pending = 0
  attempts = 0
  dead = 0
  /** Step and count in turn: most endpoints take about the same time each time. */
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
    // Put together it has no room for more; a list that is pushed to, or spread, has it for 16.
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

/** An attempt that was made. Times in ms, `at` since the epoch. */
export interface AlertAttempt {
  readonly verdict: "delivered" | "retry" | "fail"
  /** Within its round, from 1. */
  readonly attempt: number
  readonly at: number
  /** When the first one of its round was made; undefined where this is the first. */
  readonly firstAt?: number | undefined
  /** From the beginning of the round; undefined where times are not counted. */
  readonly took?: number
}

/**
 * How the deliveries of an endpoint or a tenant went within a window that moves along with the time;
 * to a tenth of its length. Costs the same however many there are, and nothing for slices without any.
 */
export class AlertWindow {
  /** The window's length, ms. */
  readonly over: number
  /** Those that something happened in, in no order but for the last one that was begun. */
  #slices: ReadonlyArray<Slice> = []

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
   * @param firstAt when its first attempt was made; undefined where none was.
   */
  dead(at: number, firstAt?: number): void {
    this.#sliceAt(at).dead++
    this.#ended(firstAt)
  }

  /** What there was in the window before a time (ms since the epoch). */
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

  /** True once all of it is too long ago. */
  isOver(at: number): boolean {
    const oldest = this.#numberAt(at) - slices
    return this.#slices.every(({ number }) => number <= oldest)
  }

  /** How it ended counts from now on, and no more that it failed at first. */
  #ended(firstAt: number | undefined): void {
    if (firstAt === undefined) return
    const number = this.#numberAt(firstAt)
    const slice = this.#find(number)
    // What a former owner tried first was never counted here.
    if (slice !== undefined && slice.pending > 0) slice.pending--
  }

  #sliceAt(at: number): Slice {
    const number = this.#numberAt(at)
    const known = this.#find(number)
    if (known !== undefined) return known
    const slice = new Slice(number)
    // One has a place for each remainder, so that a clock that is put back leaves no more of them.
    const others = this.#slices.filter((other) => (other.number - number) % slices !== 0)
    this.#slices = others.concat(slice)
    return slice
  }

  #find(number: number): Slice | undefined {
    const last = this.#slices.at(-1)
    return last?.number === number ? last : this.#slices.find((slice) => slice.number === number)
  }

  #numberAt(at: number): number {
    return Math.floor((at * slices) / this.over)
  }
}
