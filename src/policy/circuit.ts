import type { CircuitSettings } from "../domain/circuit.ts"
import type { Health } from "../domain/health.ts"
import { healthy, isHealthy } from "../domain/health.ts"
import { isFromWrongClock, maxSkewMs } from "./clock-skew.ts"
import type { Outcome } from "./failure-count.ts"
import {
  closed,
  heldUntil,
  isLate,
  keptText,
  onlyHeld,
  opened,
  withPermanent,
  withSuccess,
  withTransient
} from "./failure-count.ts"

export type { CircuitSettings } from "../domain/circuit.ts"
export type { Outcome } from "./failure-count.ts"
export { RateWindow, toHalfOpen } from "./failure-count.ts"

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

const afterSuccess = (
  health: Health,
  outcome: Outcome,
  settings: CircuitSettings,
  { ramping }: Circumstances
): Consequence => {
  const { circuit } = health
  if (circuit.state === "closed") {
    const held = heldUntil(health, outcome)
    const isClean =
      health.failuresInRow === 0 && health.permanentInRow === 0 && health.failingSince === undefined
    const isSettled = ramping || circuit.coolDown === undefined
    if (isClean && isSettled && held.notBefore === health.notBefore)
      return { health, transitions: none }
    const well = withSuccess(health, outcome)
    return {
      health: ramping ? well : { ...well, circuit: { state: "closed", since: circuit.since } },
      transitions: none
    }
  }
  const well = withSuccess(health, outcome)
  if (isLate(health, outcome)) return { health: well, transitions: none }
  const { coolDown = settings.coolDown, successes = 0 } = well.circuit
  return successes < settings.successes
    ? { health: withProbe(well, outcome), transitions: none }
    : { health: closed(well, outcome.at, coolDown), transitions: ["circuit-closed"] }
}

const withProbe = (health: Health, { delivery }: Outcome): Health => ({
  ...health,
  circuit: { ...health.circuit, lastProbe: delivery }
})

/** A probe with a permanent failure neither closes nor opens the circuit. */
const afterPermanent = (
  health: Health,
  outcome: Outcome,
  { permanentFailures }: CircuitSettings
): Consequence => {
  const isProbe = health.circuit.state === "half-open" && !isLate(health, outcome)
  const counted = withPermanent(health, outcome)
  const { permanentInRow } = counted
  return {
    health: isProbe ? withProbe(counted, outcome) : counted,
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
  const { at, delivery } = outcome
  const { circuit } = health
  const counted = withTransient(health, outcome)
  const { failingSince = at } = counted
  const giveUpAt = failingSince + settings.giveUpAfter
  const why = whyOpen(health, counted.failuresInRow, outcome, settings, circumstances)
  const now = { ...counted, giveUpAt }
  const lastProbe = circuit.state === "half-open" ? delivery : circuit.lastProbe
  const coolDown = nextCoolDown(circuit.coolDown, settings, circumstances.spread)
  return {
    health: why === undefined ? now : opened(now, at, coolDown, why, lastProbe),
    transitions: why === undefined ? none : ["circuit-opened"],
    ...(at >= giveUpAt
      ? {
          giveUp: `nothing but failures since ${new Date(failingSince).toISOString()}, the last: ${answerText(outcome)}`
        }
      : {})
  }
}

const failedProbe = "the probe failed: "

/** True for the reason with which a circuit opens again because a probe failed: its endpoint stays down. */
export const isFailedProbe = (why: string): boolean => why.startsWith(failedProbe)

const whyOpen = (
  { circuit }: Health,
  failuresInRow: number,
  outcome: Outcome,
  settings: CircuitSettings,
  { ramping, rateExceeded }: Circumstances
): string | undefined => {
  const answer = answerText(outcome)
  if (circuit.state === "half-open") return `${failedProbe}${answer}`
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

const answerText = ({ error, status }: Outcome): string => {
  const parts = [
    ...(status === undefined ? [] : [String(status)]),
    ...(error === undefined ? [] : [keptText(error)])
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
