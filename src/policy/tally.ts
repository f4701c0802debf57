import { stepOf } from "./durations.ts"

/** Number of slices of an hour. Older counts are dropped one slice at a time. */
const slices = 6
/** Length of a slice, ms. */
const sliceLength = 10 * 60_000
/** The table grows by this many steps of durations. Most endpoints need few. */
const stride = 8
/** Maximum number of attempts that are listed one by one. */
const most = 16
/** Factor that leaves bits for a step and a flag below the slice. */
const packed = 256

/** Returns the slice's number, counted since the epoch. */
const sliceAt = (at: number): number => Math.floor(at / sliceLength)

/** Counts of attempts, and a histogram of their durations. */
export interface Counts {
  readonly attempts: number
  readonly delivered: number
  /** Attempts by step of the scale of durations, without empty steps at the end. */
  readonly durations: ReadonlyArray<number>
}

/** The counts without any attempt. */
export const noCounts: Counts = { attempts: 0, delivered: 0, durations: [] }

/** Returns the sum of counts. */
export const addCounts = (all: ReadonlyArray<Counts>): Counts => {
  const durations: Array<number> = []
  let attempts = 0
  let delivered = 0
  for (const counts of all) {
    attempts += counts.attempts
    delivered += counts.delivered
    for (const [step, count] of counts.durations.entries())
      durations[step] = (durations[step] ?? 0) + count
  }
  return { attempts, delivered, durations }
}

/** Returns the start of the period that a tally covers at a time. Both in ms since the epoch. */
export const tallySince = (at: number): number => (sliceAt(at) - slices + 1) * sliceLength

/**
 * The attempts of the last hour in whole slices of ten minutes: between 50 and 60 minutes. The
 * first few attempts are kept in a list, since most of many endpoints have no more.
 */
export class Tally {
  /** Slice, step and success flag, packed into one number each. */
  #few: Array<number> = []
  #table: TallyTable | undefined

  /**
   * Counts an attempt.
   *
   * @param ms its duration.
   * @param at when it ended, ms since the epoch.
   */
  note(delivered: boolean, ms: number, at: number): void {
    const slice = sliceAt(at)
    if (this.#table !== undefined) {
      this.#table.count(delivered, stepOf(ms), slice)
      return
    }
    // concat() leaves no spare capacity. A list that is pushed to, or spread, has capacity for 16.
    this.#few = this.#few.concat(slice * packed + stepOf(ms) * 2 + (delivered ? 1 : 0))
    if (this.#few.length > most) this.#tidy(slice)
  }

  /** Returns the counts since `tallySince`. */
  read(at: number): Counts {
    const oldest = sliceAt(at) - slices + 1
    return this.#table?.read(oldest) ?? this.#readFew(oldest)
  }

  /** Returns true if all attempts are older than an hour. */
  isOver(at: number): boolean {
    const newest = this.#table?.newest ?? Math.floor((this.#few.at(-1) ?? 0) / packed)
    return newest <= sliceAt(at) - slices
  }

  /** Ignores attempts in the future: the clock was set back by more than an hour. */
  #readFew(oldest: number): Counts {
    const durations: Array<number> = []
    let attempts = 0
    let delivered = 0
    for (const one of this.#few) {
      const slice = Math.floor(one / packed)
      if (slice < oldest || slice >= oldest + 2 * slices) continue
      const step = (one % packed) >> 1
      while (durations.length <= step) durations.push(0)
      durations[step] = (durations[step] ?? 0) + 1
      attempts++
      delivered += one % 2
    }
    return { attempts, delivered, durations }
  }

  #tidy(slice: number): void {
    const recent = this.#few.filter((one) => Math.floor(one / packed) > slice - slices)
    if (recent.length <= most / 2) {
      this.#few = recent
      return
    }
    this.#table = this.#tabulated()
    this.#few = []
  }

  #tabulated(): TallyTable {
    const table = new TallyTable()
    for (const one of this.#few)
      table.count(one % 2 === 1, (one % packed) >> 1, Math.floor(one / packed))
    return table
  }
}

/**
 * The attempts of an hour by slice and duration. Allocates only the range of durations that occur.
 */
class TallyTable {
  /** Number of the newest slice, counted since the epoch. */
  #newest = 0
  /** The first step of durations in the table. */
  #low = 0
  #width = 0
  /** By slice: the number delivered, then the attempts by duration. */
  #cells = new Uint32Array(0)

  count(delivered: boolean, step: number, slice: number): void {
    this.#advance(slice)
    if (step < this.#low || step >= this.#low + this.#width) this.#widen(step)
    const row = (this.#newest % slices) * (this.#width + 1)
    const cell = row + 1 + step - this.#low
    this.#cells[cell] = (this.#cells[cell] ?? 0) + 1
    if (delivered) this.#cells[row] = (this.#cells[row] ?? 0) + 1
  }

  read(oldest: number): Counts {
    const durations = new Array<number>(this.#low + this.#width).fill(0)
    let attempts = 0
    let delivered = 0
    for (let slice = Math.max(oldest, this.#newest - slices + 1); slice <= this.#newest; slice++) {
      const row = (slice % slices) * (this.#width + 1)
      delivered += this.#cells[row] ?? 0
      for (let column = 0; column < this.#width; column++) {
        const count = this.#cells[row + 1 + column] ?? 0
        attempts += count
        durations[this.#low + column] = (durations[this.#low + column] ?? 0) + count
      }
    }
    while (durations.at(-1) === 0) durations.pop()
    return { attempts, delivered, durations }
  }

  get newest(): number {
    return this.#newest
  }

  /**
   * After a small step back of the clock, counting continues in the newest slice. After a large
   * one, the table is cleared.
   */
  #advance(slice: number): void {
    if (slice === this.#newest) return
    const passed = slice - this.#newest
    if (passed < 0 && passed > -slices) return
    const width = this.#width + 1
    if (Math.abs(passed) >= slices) this.#cells.fill(0)
    else
      for (let next = this.#newest + 1; next <= slice; next++)
        this.#cells.fill(0, (next % slices) * width, (next % slices) * width + width)
    this.#newest = slice
  }

  #widen(step: number): void {
    const aligned = step - (step % stride)
    const low = this.#width === 0 ? aligned : Math.min(this.#low, aligned)
    const high = Math.max(this.#low + this.#width, aligned + stride)
    const width = high - low
    const cells = new Uint32Array(slices * (width + 1))
    for (let slice = 0; slice < slices; slice++) {
      const row = slice * (this.#width + 1)
      const to = slice * (width + 1)
      cells[to] = this.#cells[row] ?? 0
      cells.set(
        this.#cells.subarray(row + 1, row + 1 + this.#width),
        to + 1 + (this.#width === 0 ? 0 : this.#low - low)
      )
    }
    this.#low = low
    this.#width = width
    this.#cells = cells
  }
}
