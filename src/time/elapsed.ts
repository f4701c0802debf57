import type { Timers } from "./timers.ts"
import { timers } from "./timers.ts"

/** A change of the wall clock up to this size is neither a suspension nor a step, ms. */
const steppedMs = 1_000

/**
 * Pause between two reads of the wall clock, ms: the clock is asked several times for each
 * delivery.
 */
const lookEveryMs = 1

/** What was seen of one pair of clocks. */
interface Reading {
  readonly clocks: Timers
  suspendedMs: number
  steps: number
  lookedAt: number
  /** What the wall clock is ahead of the monotonic clock, ms. */
  difference: number
}

const firstReading = (clocks: Timers): Reading => {
  const lookedAt = clocks.monotonicMs()
  const difference = clocks.wallMs() - lookedAt
  return { clocks, suspendedMs: 0, steps: 0, lookedAt, difference }
}

let reading = firstReading(timers)
/** Those of all clocks that are or were in use: a simulation has several machines. */
const readings = new WeakMap<Timers, Reading>([[timers, reading]])

const currentReading = (): Reading => {
  if (reading.clocks === timers) return reading
  reading = readings.get(timers) ?? firstReading(timers)
  readings.set(timers, reading)
  return reading
}

/**
 * A clock for elapsed time, in ms since an arbitrary moment.
 *
 * The monotonic clock stops while a machine is suspended, but the broker's retention does not. So
 * what the wall clock has gained on the monotonic clock counts as well. A wall clock that is set
 * forward looks the same, and makes things seem older than they are.
 */
export const elapsedMs = (): number => {
  const seen = currentReading()
  const monotonic = timers.monotonicMs()
  if (monotonic - seen.lookedAt < lookEveryMs) return monotonic + seen.suspendedMs
  seen.lookedAt = monotonic
  const now = timers.wallMs() - monotonic
  const gained = now - seen.difference
  if (gained > steppedMs) seen.suspendedMs += gained
  if (Math.abs(gained) > steppedMs) seen.steps++
  seen.difference = now
  return monotonic + seen.suspendedMs
}

/**
 * Returns how often the wall clock was seen to step, or the machine to have been suspended, until
 * `elapsedMs` was last called.
 */
export const seenClockSteps = (): number => currentReading().steps

/**
 * Returns how often the wall clock has stepped, or the machine was suspended. What was found out
 * about the wall clock holds until the number changes.
 */
export const clockSteps = (): number => {
  elapsedMs()
  return currentReading().steps
}

/**
 * Since when outcomes have been counted by a wall clock that did not step. Counts by the time from
 * before a step are out of place: to whoever asks for the last minutes they are gone, or too many.
 */
export class SteadySince {
  #steps = clockSteps()
  #since: number

  /** @param now ms since the epoch. */
  constructor(now: number) {
    this.#since = now
  }

  /**
   * Returns the time, ms since the epoch: the present one where the clock has stepped since the
   * last call, or the machine was suspended.
   */
  at(now: number): number {
    const steps = clockSteps()
    if (steps !== this.#steps) this.#since = now
    this.#steps = steps
    return this.#since
  }
}
