import { clockSteps } from "./elapsed.ts"

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
