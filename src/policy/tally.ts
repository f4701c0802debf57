import { stepOf } from "./durations.ts"

/** What is older than an hour is forgotten a slice at a time. */
const slices = 6
/** ms */
const sliceLength = 10 * 60_000
/** Steps of durations by which room is made: most endpoints need few. */
const stride = 8
/** Attempts that are listed one by one. */
const most = 16
/** Room for a step and a flag beside the slice. */
const packed = 256

/** Counted since the epoch. */
const sliceAt = (at: number): number => Math.floor(at / sliceLength)

/** How attempts went, and how long they took. */
export interface Counts {
  readonly attempts: number
  readonly delivered: number
  /** How many fell into each step of the scale of durations; without those beyond the last. */
  readonly durations: ReadonlyArray<number>
}

/** That of nobody. */
export const noCounts: Counts = { attempts: 0, delivered: 0, durations: [] }

/** All of them taken together. */
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

/** When what a tally tells of at a time begins; both in ms since the epoch. */
export const tallySince = (at: number): number => (sliceAt(at) - slices + 1) * sliceLength

/**
 * The attempts of the last hour, by whole slices of ten minutes: between 50 and 60 minutes. The first
 * few are listed, for most of many endpoints have no more.
 */
export class Tally {
  /** Slice, step and whether it was delivered, in one number each. */
  #few: Array<number> = []
  #table: Table | undefined

  /**
   * Counts an attempt.
   *
   * @param ms it took.
   * @param at when it ended, ms since the epoch.
   */
  note(delivered: boolean, ms: number, at: number): void {
    const slice = sliceAt(at)
    if (this.#table !== undefined) {
      this.#table.count(delivered, stepOf(ms), slice)
      return
    }
    // Put together it has no room for more; a list that is pushed to, or spread, has it for 16.
    this.#few = this.#few.concat(slice * packed + stepOf(ms) * 2 + (delivered ? 1 : 0))
    if (this.#few.length > most) this.#tidy(slice)
  }

  /** What there was since `tallySince`. */
  read(at: number): Counts {
    const oldest = sliceAt(at) - slices + 1
    return this.#table?.read(oldest) ?? this.#readFew(oldest)
  }

  /** True once all of it is too long ago. */
  isOver(at: number): boolean {
    const newest = this.#table?.newest ?? Math.floor((this.#few.at(-1) ?? 0) / packed)
    return newest <= sliceAt(at) - slices
  }

  /** What a clock that was put back by more than an hour says is still to come does not count. */
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

  #tabulated(): Table {
    const table = new Table()
    for (const one of this.#few)
      table.count(one % 2 === 1, (one % packed) >> 1, Math.floor(one / packed))
    return table
  }
}

/** The attempts of an hour by slice and duration; has room for the durations that there were only. */
class Table {
  /** Counted since the epoch. */
  #newest = 0
  /** The first step of durations that there is room for. */
  #low = 0
  #width = 0
  /** By slice: the delivered, and the attempts by their duration. */
  #cells = new Uint32Array(0)

  count(delivered: boolean, step: number, slice: number): void {
    this.#advance(slice)
    if (step < this.#low || step >= this.#low + this.#width) this.#makeRoom(step)
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

  /** A clock that is put back a little goes on in the newest slice; after more it begins anew. */
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

  #makeRoom(step: number): void {
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
