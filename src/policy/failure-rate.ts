import type { CircuitSettings, FailureRate } from "../domain/circuit.ts"

/** Number of slices of a window. Counts older than the window are dropped one slice at a time. */
const slices = 20
const minute = 60_000

interface Slice {
  /** The slice's number, counted since the epoch. */
  number: number
  attempts: number
  failures: number
}

/**
 * Counts the failures of one endpoint within a sliding window, accurate to a twentieth of its
 * length. The cost does not depend on the number of attempts.
 */
export class RateWindow {
  #over: number
  /** Has holes until the first window has passed. */
  #ring: Array<Slice | undefined> = []

  /** @param over the window's length in ms. */
  constructor(over: number = minute) {
    this.#over = over
  }

  /**
   * Counts an attempt.
   *
   * @param ok true for any answer that shows that the receiver is reachable, including a permanent
   *   failure.
   * @param at ms since the epoch.
   */
  note(ok: boolean, at: number): void {
    const number = this.#numberAt(at)
    const place = number % slices
    let slice = this.#ring[place]
    if (slice === undefined || slice.number !== number) {
      slice = { number, attempts: 0, failures: 0 }
      this.#ring[place] = slice
    }
    slice.attempts++
    if (!ok) slice.failures++
  }

  /**
   * Returns true if the failure rate exceeds the limit. If the settings specify another length, a
   * new window of that length begins.
   *
   * @param at ms since the epoch.
   */
  exceeds({ rate }: Pick<CircuitSettings, "rate">, at: number): boolean {
    if (rate === undefined) return false
    if (rate.over !== this.#over) {
      this.#over = rate.over
      this.clear()
    }
    return this.#reaches(rate, at)
  }

  /**
   * Clears the window. Called when the circuit opens, so that old failures do not count after it
   * closes.
   */
  clear(): void {
    this.#ring = []
  }

  #reaches({ of, percent }: FailureRate, at: number): boolean {
    const now = this.#numberAt(at)
    let attempts = 0
    let failures = 0
    for (const slice of this.#ring) {
      if (slice === undefined || slice.number > now || slice.number <= now - slices) continue
      attempts += slice.attempts
      failures += slice.failures
    }
    return attempts >= of && failures > 0 && failures * 100 >= attempts * percent
  }

  #numberAt(at: number): number {
    return Math.floor((at * slices) / this.#over)
  }
}
