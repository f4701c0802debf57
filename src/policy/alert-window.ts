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

interface Slice extends Sums {
  /** Which one it is, counted since the epoch. */
  readonly number: number
  /** Step and count in turn: most endpoints take about the same time each time. */
  readonly times: Array<number>
}

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
  readonly #ring: Array<Slice | undefined> = []
  #newest = 0

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
      if (took !== undefined) countTime(slice.times, stepOf(took))
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
    for (const slice of this.#ring) {
      if (slice === undefined || slice.number > now || slice.number <= now - slices) continue
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
    return this.#newest <= this.#numberAt(at) - slices
  }

  /** How it ended counts from now on, and no more that it failed at first. */
  #ended(firstAt: number | undefined): void {
    if (firstAt === undefined) return
    const number = this.#numberAt(firstAt)
    const slice = this.#ring[number % slices]
    // What a former owner tried first was never counted here.
    if (slice?.number === number && slice.pending > 0) slice.pending--
  }

  #sliceAt(at: number): Slice {
    const number = this.#numberAt(at)
    const place = number % slices
    const known = this.#ring[place]
    if (known !== undefined && known.number === number) return known
    const slice: Slice = { number, ...noSums, times: [] }
    this.#ring[place] = slice
    this.#newest = Math.max(this.#newest, number)
    return slice
  }

  #numberAt(at: number): number {
    return Math.floor((at * slices) / this.over)
  }
}

const countTime = (times: Array<number>, step: number): void => {
  for (let place = 0; place < times.length; place += 2)
    if (times[place] === step) {
      times[place + 1] = (times[place + 1] ?? 0) + 1
      return
    }
  times.push(step, 1)
}
