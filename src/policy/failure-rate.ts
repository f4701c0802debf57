import type { CircuitSettings, FailureRate } from "../domain/circuit.ts"

/** Slices of a window: what is older than the window is forgotten a slice at a time. */
const slices = 20
const minute = 60_000

interface Slice {
  /** Which one it is, counted since the epoch. */
  number: number
  attempts: number
  failures: number
}

/**
 * The failures of one endpoint within a window that moves along with the time; to a twentieth of
 * its length. Costs the same however many attempts there are.
 */
export class RateWindow {
  #over: number
  /** Has holes until it was filled once. */
  #ring: Array<Slice | undefined> = []

  /** @param over the window's length in ms. */
  constructor(over: number = minute) {
    this.#over = over
  }

  /**
   * Counts an attempt.
   *
   * @param ok true for any answer that shows the receiver to be there, a permanent failure too.
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
   * Whether more failed than is allowed. Where the settings have another length than the window, a
   * window of that length begins.
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

  /** Forgets everything: for a circuit that opens, lest its closing begin with the old failures. */
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
