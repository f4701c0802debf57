import type { CircuitSettings } from "../domain/circuit.ts"
import type { Health } from "../domain/health.ts"
import { healthy, isHealthy } from "../domain/health.ts"
import { isFromWrongClock, maxSkewMs } from "./clock-skew.ts"

export type { CircuitSettings } from "../domain/circuit.ts"
export { RateWindow } from "./failure-rate.ts"

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

/** Further inputs for judging an outcome. */
export interface Circumstances {
  /** A random number in [0, 1). */
  readonly spread: number
  /** The failure rate of the latest attempts exceeds the limit. */
  readonly rateExceeded: boolean
  /**
   * The circuit has closed and traffic is still ramping up. One transient failure opens it again.
   */
  readonly ramping: boolean
}

/**
 * The health of an endpoint after an outcome, the same object if nothing has changed, and what
 * follows from it.
 */
export interface Consequence {
  readonly health: Health
  readonly transitions: ReadonlyArray<"circuit-opened" | "circuit-closed">
  /** Why the endpoint must be disabled. Absent if it need not be. */
  readonly giveUp?: string
}

/** Returns the consequence of an outcome. */
export const afterOutcome = (
  health: Health,
  outcome: Outcome,
  settings: CircuitSettings,
  circumstances: Circumstances
): Consequence => {
  if (outcome.ok) return afterSuccess(health, outcome, settings, circumstances)
  return outcome.permanent
    ? afterPermanent(health, outcome, settings)
    : afterTransient(health, outcome, settings, circumstances)
}

const none: Consequence["transitions"] = []

/**
 * Allowed error between two clocks, ms: times are read in whole ms, and durations are measured with
 * another clock.
 */
const clockError = 5

const isLate = ({ circuit }: Health, { at, sentAt }: Pick<Outcome, "at" | "sentAt">): boolean =>
  circuit.state === "open" ||
  (sentAt !== undefined &&
    sentAt + clockError < circuit.since &&
    !isFromWrongClock(circuit.since, at))

/**
 * True for an outcome of a probe: its request was sent while the circuit was half-open, and the
 * endpoint has only failed since the delivery's previous attempt. Where others succeeded meanwhile,
 * the delivery itself may be what fails, so its request is an attempt like any other.
 *
 * @param health before the outcome.
 * @param lastAttemptAt the delivery's previous attempt, ms since the epoch; undefined for its first.
 */
export const isProbe = (
  health: Health,
  outcome: Pick<Outcome, "at" | "sentAt">,
  lastAttemptAt: number = Number.POSITIVE_INFINITY
): boolean => {
  const { circuit, failingSince = Number.POSITIVE_INFINITY } = health
  const hasOnlyFailed = failingSince < outcome.at && failingSince <= lastAttemptAt
  return circuit.state === "half-open" && hasOnlyFailed && !isLate(health, outcome)
}

/** Returns the later of the current and the new Retry-After; nothing if both have passed. */
const heldUntil = (
  { notBefore = 0 }: Health,
  { at, retryAt = 0 }: Outcome
): Pick<Health, "notBefore"> => {
  const until = Math.max(notBefore, retryAt)
  return until > at ? { notBefore: until } : {}
}

/** Returns the health with only `notBefore` updated, or the same object if it is unchanged. */
const onlyHeld = (health: Health, outcome: Outcome): Health => {
  const held = heldUntil(health, outcome)
  if (held.notBefore === health.notBefore) return health
  const { notBefore: _, ...rest } = health
  return { ...rest, ...held }
}

const afterSuccess = (
  health: Health,
  outcome: Outcome,
  settings: CircuitSettings,
  { ramping }: Circumstances
): Consequence => {
  const { circuit } = health
  if (circuit.state !== "closed" && isLate(health, outcome)) {
    const now = onlyHeld(health, outcome)
    return {
      health: now.permanentInRow === 0 ? now : { ...now, permanentInRow: 0 },
      transitions: none
    }
  }
  const held = heldUntil(health, outcome)
  const isClean =
    health.failuresInRow === 0 && health.permanentInRow === 0 && health.failingSince === undefined
  const isSettled = ramping || circuit.coolDown === undefined
  if (circuit.state === "closed" && isClean && isSettled && held.notBefore === health.notBefore)
    return { health, transitions: none }
  const well = (state: Health["circuit"]): Health => ({
    v: 1,
    generation: health.generation,
    circuit: state,
    failuresInRow: 0,
    permanentInRow: 0,
    ...held
  })
  if (circuit.state === "closed")
    return {
      health: well(ramping ? circuit : { state: "closed", since: circuit.since }),
      transitions: none
    }
  const successes = (circuit.successes ?? 0) + 1
  if (successes < settings.successes)
    return {
      health: well({ ...circuit, successes, lastProbe: outcome.delivery }),
      transitions: none
    }
  const { coolDown = settings.coolDown } = circuit
  return {
    health: well({ state: "closed", since: outcome.at, coolDown }),
    transitions: ["circuit-closed"]
  }
}

/**
 * The receiver is reachable, so the streak of transient failures ends. It is still unknown whether
 * it accepts deliveries: a probe with a permanent failure neither closes nor opens the circuit.
 */
const afterPermanent = (
  health: Health,
  outcome: Outcome,
  { permanentFailures }: CircuitSettings
): Consequence => {
  const permanentInRow = health.permanentInRow + 1
  const { circuit, failingSince, failuresInRow, generation, giveUpAt } = health
  const streak = isLate(health, outcome)
    ? {
        circuit,
        failuresInRow,
        ...(failingSince === undefined ? {} : { failingSince }),
        ...(giveUpAt === undefined ? {} : { giveUpAt })
      }
    : {
        circuit:
          circuit.state === "half-open" ? { ...circuit, lastProbe: outcome.delivery } : circuit,
        failuresInRow: 0
      }
  return {
    health: {
      v: 1,
      generation,
      ...streak,
      permanentInRow,
      ...heldUntil(health, outcome),
      ...lastOf(outcome)
    },
    transitions: none,
    ...(permanentInRow >= permanentFailures
      ? {
          giveUp: `${permanentInRow} permanent failures in a row, the last: ${answerText(outcome)}`
        }
      : {})
  }
}

const afterTransient = (
  health: Health,
  outcome: Outcome,
  settings: CircuitSettings,
  circumstances: Circumstances
): Consequence => {
  if (isLate(health, outcome)) return { health: onlyHeld(health, outcome), transitions: none }
  const { at } = outcome
  const { circuit, failingSince = at, generation, permanentInRow } = health
  const failuresInRow = health.failuresInRow + 1
  const giveUpAt = failingSince + settings.giveUpAfter
  const why = whyOpen(health, failuresInRow, outcome, settings, circumstances)
  const { coolDown: latest, lastProbe } = circuit
  const coolDown = nextCoolDown(latest, settings, circumstances.spread)
  const probe = circuit.state === "half-open" ? outcome.delivery : lastProbe
  return {
    health: {
      v: 1,
      generation,
      circuit:
        why === undefined
          ? circuit
          : {
              state: "open",
              since: at,
              coolDown,
              until: at + coolDown,
              ...(probe === undefined ? {} : { lastProbe: probe }),
              why
            },
      failuresInRow,
      permanentInRow,
      failingSince,
      giveUpAt,
      ...heldUntil(health, outcome),
      ...lastOf(outcome)
    },
    transitions: why === undefined ? none : ["circuit-opened"],
    ...(at >= giveUpAt
      ? {
          giveUp: `nothing but failures since ${new Date(failingSince).toISOString()}, the last: ${answerText(outcome)}`
        }
      : {})
  }
}

const whyOpen = (
  { circuit }: Health,
  failuresInRow: number,
  outcome: Outcome,
  settings: CircuitSettings,
  { ramping, rateExceeded }: Circumstances
): string | undefined => {
  const answer = answerText(outcome)
  if (circuit.state === "half-open") return `the probe failed: ${answer}`
  if (ramping) return `failed again before traffic was back in full: ${answer}`
  if (failuresInRow >= settings.failures)
    return failuresInRow === 1 ? answer : `${failuresInRow} failures in a row, the last: ${answer}`
  if (rateExceeded)
    return `at least ${settings.rate?.percent ?? 0}% of the latest attempts failed, the last: ${answer}`
  return undefined
}

/** Maximum jitter of a probe, as a share of its cool-down. */
const jitter = 0.25

/**
 * Returns the first cool-down, or twice the latest one, in whole ms. Jitter applies to every
 * cool-down, including the first and the longest, so that endpoints that fail together are not
 * probed together.
 */
const nextCoolDown = (
  latest: number | undefined,
  { coolDown, maxCoolDown }: CircuitSettings,
  spread: number
): number => {
  const nominal = latest === undefined ? coolDown : 2 * latest
  const least = Math.max(coolDown, Math.min(nominal, maxCoolDown / (1 + jitter)))
  const most = Math.min(maxCoolDown, least * (1 + jitter))
  const drawn = Math.round(least + spread * (most - least))
  return Math.max(coolDown, Math.min(drawn, maxCoolDown))
}

const maxTextLength = 200

const lastOf = ({ error, status }: Outcome): Pick<Health, "lastStatus" | "lastError"> => ({
  ...(status === undefined ? {} : { lastStatus: status }),
  ...(error === undefined ? {} : { lastError: error.slice(0, maxTextLength) })
})

const answerText = ({ error, status }: Outcome): string => {
  const parts = [
    ...(status === undefined ? [] : [String(status)]),
    ...(error === undefined ? [] : [error.slice(0, maxTextLength)])
  ]
  return parts.length === 0 ? "no answer" : parts.join(" ")
}

/** Returns true if only a probe may be sent. */
export const isOpen = ({ circuit }: Health): boolean => circuit.state !== "closed"

/** Returns true while a Retry-After applies. It applies to probes, too. */
export const isHeld = ({ notBefore = 0 }: Health, now: number): boolean => notBefore > now

/**
 * Returns the health with a Retry-After that ends no later than `cap` ms from now, the same object
 * if it does. One that ends later was noted by a clock that was set back since.
 */
export const heldAtMost = (health: Health, now: number, cap: number): Health =>
  (health.notBefore ?? 0) > now + cap + 2 * maxSkewMs ? { ...health, notBefore: now + cap } : health

/**
 * Returns true if the next probe may be sent. The caller sends one at a time. A new owner does not
 * know the outcome of a probe of a half-open circuit, so it may send one there, too. A circuit that
 * opened in the future is probed at once: the end of its cool-down means nothing.
 */
export const mayProbe = (health: Health, now: number): boolean => {
  const { since, until = 0 } = health.circuit
  return isOpen(health) && (until <= now || isFromWrongClock(since, now)) && !isHeld(health, now)
}

/**
 * Returns the health with an open circuit whose cool-down ends now, the same object if the circuit is
 * not open. A Retry-After still holds.
 */
export const cooledDown = (health: Health, now: number): Health => {
  const { state, until = now } = health.circuit
  return state === "open" && until > now
    ? { ...health, circuit: { ...health.circuit, until: now } }
    : health
}

/** Returns the health with a half-open circuit; the same object if the circuit is not open. */
export const toHalfOpen = (health: Health, now: number): Health =>
  health.circuit.state === "open"
    ? { ...health, circuit: { ...health.circuit, state: "half-open", since: now, successes: 0 } }
    : health

/**
 * Returns the health without its failures, the same object if it has none. A Retry-After stays: it
 * is the receiver's wish, not a failure.
 */
export const withoutFailures = (health: Health): Health => {
  const { notBefore, ...rest } = health
  if (isHealthy(rest)) return health
  return { ...healthy(health.generation), ...(notBefore === undefined ? {} : { notBefore }) }
}

/**
 * Returns true if traffic has not fully ramped up since the circuit closed. The owner starts at 1
 * request in flight.
 */
export const isRamping = ({ circuit }: Health): boolean =>
  circuit.state === "closed" && circuit.coolDown !== undefined

/**
 * Returns the next in-flight limit after a success. One more for each success doubles the limit
 * every round trip.
 */
export const ramp = (limit: number, cap: number): number => Math.min(cap, Math.max(1, limit) + 1)
