import type { CircuitSettings } from "../domain/circuit.ts"
import type { Health } from "../domain/health.ts"

export type { CircuitSettings } from "../domain/circuit.ts"
export { RateWindow } from "./failure-rate.ts"

/** What an attempt says about its endpoint. Times in ms since the epoch. */
export interface Outcome {
  readonly ok: boolean
  /** The receiver did answer, and says that this request is wrong. */
  readonly permanent: boolean
  readonly at: number
  readonly delivery: string
  readonly status?: number
  readonly error?: string
  /** The end of a Retry-After, which holds for the whole endpoint. */
  readonly retryAt?: number
  /**
   * When the request was sent. What was sent before the circuit came into its present state tells of
   * a time that is over, and neither opens nor closes it.
   */
  readonly sentAt?: number
}

/** What else is to be known for judging an outcome. */
export interface Circumstances {
  /** Random, from 0 to below 1. */
  readonly spread: number
  /** Too large a share of the latest attempts failed. */
  readonly rateExceeded: boolean
  /** The circuit has closed, and traffic is not back in full: one transient failure opens it. */
  readonly ramping: boolean
}

/** The health of an endpoint after an outcome: the same object where nothing has changed. */
export interface Consequence {
  readonly health: Health
  readonly news: ReadonlyArray<"circuit-opened" | "circuit-closed">
  /** Why the endpoint is to be disabled. */
  readonly giveUp?: string
}

/** Judges an outcome. */
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

const none: Consequence["news"] = []

/** Clocks are read in whole ms, and how long a request took by another one, ms. */
const clockError = 5

const isLate = ({ circuit }: Health, { sentAt }: Outcome): boolean =>
  circuit.state === "open" || (sentAt !== undefined && sentAt + clockError < circuit.since)

/** The later of what stands and what was just asked for; nothing where that has passed. */
const heldUntil = (
  { notBefore = 0 }: Health,
  { at, retryAt = 0 }: Outcome
): Pick<Health, "notBefore"> => {
  const until = Math.max(notBefore, retryAt)
  return until > at ? { notBefore: until } : {}
}

/** With nothing new but until when the receiver is left alone; the same object where that is as it was. */
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
    return { health: now.permanentInRow === 0 ? now : { ...now, permanentInRow: 0 }, news: none }
  }
  const held = heldUntil(health, outcome)
  const isClean =
    health.failuresInRow === 0 && health.permanentInRow === 0 && health.failingSince === undefined
  const isSettled = ramping || circuit.coolDown === undefined
  if (circuit.state === "closed" && isClean && isSettled && held.notBefore === health.notBefore)
    return { health, news: none }
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
      news: none
    }
  const successes = (circuit.successes ?? 0) + 1
  if (successes < settings.successes)
    return { health: well({ ...circuit, successes, lastProbe: outcome.delivery }), news: none }
  const { coolDown = settings.coolDown } = circuit
  return {
    health: well({ state: "closed", since: outcome.at, coolDown }),
    news: ["circuit-closed"]
  }
}

/**
 * The receiver is there, so what failed in a row before has ended. Whether it takes anything is as
 * open as before: a probe that fails like this neither closes the circuit nor opens it.
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
    news: none,
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
  if (isLate(health, outcome)) return { health: onlyHeld(health, outcome), news: none }
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
    news: why === undefined ? none : ["circuit-opened"],
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

/** What a probe comes later by at most, as a share of its cool-down. */
const jitter = 0.25

/**
 * The first cool-down, or twice the latest, in whole ms: spread, since endpoints that fail together
 * must not be probed together, and that is true of the first one and of the longest, too.
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

/** Nothing but a probe may go. */
export const isOpen = ({ circuit }: Health): boolean => circuit.state !== "closed"

/** The receiver asked to be left alone, which holds for a probe, too. */
export const isHeld = ({ notBefore = 0 }: Health, now: number): boolean => notBefore > now

/**
 * Whether the next probe may go, of which there must be one at a time. Of a circuit found half-open
 * by a new owner nobody knows what became of the probe, so it may go there, too.
 */
export const mayProbe = (health: Health, now: number): boolean =>
  isOpen(health) && (health.circuit.until ?? 0) <= now && !isHeld(health, now)

/** Ready for a probe; the same object where the circuit is not open. */
export const toHalfOpen = (health: Health, now: number): Health =>
  health.circuit.state === "open"
    ? { ...health, circuit: { ...health.circuit, state: "half-open", since: now, successes: 0 } }
    : health

/** Traffic is not known to be back in full since the circuit closed: the owner begins at 1 in flight. */
export const isRamping = ({ circuit }: Health): boolean =>
  circuit.state === "closed" && circuit.coolDown !== undefined

/** The next limit in flight after a success: one more for each doubles it with every full round. */
export const ramp = (limit: number, cap: number): number => Math.min(cap, Math.max(1, limit) + 1)
