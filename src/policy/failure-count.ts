import type { CircuitSettings, FailureRate } from "../domain/circuit.ts"
import type { Health } from "../domain/health.ts"
import { isFromWrongClock } from "./clock-skew.ts"

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

/*
 * How an outcome counts in an endpoint's health, and the states of its circuit. circuit.ts decides
 * with it when a circuit opens and closes; the fold of the history reads from the facts when it did.
 */

/** The outcome of an attempt as it affects its endpoint's health. Times in ms since the epoch. */
export interface Outcome {
  readonly ok: boolean
  /** The receiver answered, and rejected this request. */
  readonly permanent: boolean
  readonly at: number
  readonly delivery: string
  readonly status?: number
  readonly error?: string
  /** The end of a Retry-After, which applies to the whole endpoint. */
  readonly retryAt?: number
  /**
   * When the request was sent. A request sent before the circuit entered its current state neither
   * opens nor closes it.
   */
  readonly sentAt?: number
}

/**
 * Allowed error between two clocks, ms: times are read in whole ms, and durations are measured with
 * another clock.
 */
const clockError = 5

/**
 * True for an outcome that does not count for the circuit's state: its request was sent before the
 * circuit entered it.
 */
export const isLate = (
  { circuit }: Health,
  { at, sentAt }: Pick<Outcome, "at" | "sentAt">
): boolean =>
  circuit.state === "open" ||
  (sentAt !== undefined &&
    sentAt + clockError < circuit.since &&
    !isFromWrongClock(circuit.since, at))

/** Returns the later of the current and the new Retry-After; nothing if both have passed. */
export const heldUntil = (
  { notBefore = 0 }: Health,
  { at, retryAt = 0 }: Outcome
): Pick<Health, "notBefore"> => {
  const until = Math.max(notBefore, retryAt)
  return until > at ? { notBefore: until } : {}
}

/** Returns the health with only `notBefore` updated, or the same object if it is unchanged. */
export const onlyHeld = (health: Health, outcome: Outcome): Health => {
  const held = heldUntil(health, outcome)
  if (held.notBefore === health.notBefore) return health
  const { notBefore: _, ...rest } = health
  return { ...rest, ...held }
}

const maxTextLength = 200

/** Returns what is kept of an error's text. */
export const keptText = (error: string): string => error.slice(0, maxTextLength)

const lastOf = ({ error, status }: Outcome): Pick<Health, "lastStatus" | "lastError"> => ({
  ...(status === undefined ? {} : { lastStatus: status }),
  ...(error === undefined ? {} : { lastError: keptText(error) })
})

/** Returns the health after a success. A late one shows only that requests are not all refused. */
export const withSuccess = (health: Health, outcome: Outcome): Health => {
  const { circuit, generation } = health
  if (circuit.state !== "closed" && isLate(health, outcome)) {
    const now = onlyHeld(health, outcome)
    return now.permanentInRow === 0 ? now : { ...now, permanentInRow: 0 }
  }
  return {
    v: 1,
    generation,
    circuit:
      circuit.state === "half-open"
        ? { ...circuit, successes: (circuit.successes ?? 0) + 1 }
        : circuit,
    failuresInRow: 0,
    permanentInRow: 0,
    ...heldUntil(health, outcome)
  }
}

/**
 * Returns the health after a permanent failure. The receiver is reachable, so the streak of transient
 * failures ends, unless the outcome is late. It is still unknown whether it accepts deliveries.
 */
export const withPermanent = (health: Health, outcome: Outcome): Health => {
  const { circuit, failingSince, failuresInRow, generation, giveUpAt, permanentInRow } = health
  const streak = isLate(health, outcome)
    ? {
        failuresInRow,
        ...(failingSince === undefined ? {} : { failingSince }),
        ...(giveUpAt === undefined ? {} : { giveUpAt })
      }
    : { failuresInRow: 0 }
  return {
    v: 1,
    generation,
    circuit,
    ...streak,
    permanentInRow: permanentInRow + 1,
    ...heldUntil(health, outcome),
    ...lastOf(outcome)
  }
}

/** Returns the health after a transient failure that is not late, without when it is given up. */
export const withTransient = (health: Health, outcome: Outcome): Health => {
  const { circuit, failingSince = outcome.at, failuresInRow, generation, permanentInRow } = health
  return {
    v: 1,
    generation,
    circuit,
    failuresInRow: failuresInRow + 1,
    permanentInRow,
    failingSince,
    ...heldUntil(health, outcome),
    ...lastOf(outcome)
  }
}

/**
 * Returns the health with an open circuit.
 *
 * @param coolDown until it is probed, ms.
 * @param why one short line, for people.
 * @param lastProbe the delivery of the latest probe.
 */
export const opened = (
  health: Health,
  at: number,
  coolDown: number,
  why: string | undefined,
  lastProbe?: string
): Health => ({
  ...health,
  circuit: {
    state: "open",
    since: at,
    coolDown,
    until: at + coolDown,
    ...(lastProbe === undefined ? {} : { lastProbe }),
    ...(why === undefined ? {} : { why })
  }
})

/** Returns the health with a half-open circuit; the same object if the circuit is not open. */
export const toHalfOpen = (health: Health, now: number): Health =>
  health.circuit.state === "open"
    ? { ...health, circuit: { ...health.circuit, state: "half-open", since: now, successes: 0 } }
    : health

/** Returns the health with a circuit that closed, whose traffic ramps up. */
export const closed = (health: Health, at: number, coolDown: number | undefined): Health => ({
  ...health,
  circuit: { state: "closed", since: at, ...(coolDown === undefined ? {} : { coolDown }) }
})
