import type { Alert, AlertName } from "../domain/alert.ts"

/** The measured state of one alert. */
export interface AlertReading extends Pick<Alert, "level" | "name" | "status" | "unit"> {
  readonly value?: number
  readonly threshold: number
  /**
   * `bad` raises the alert and `good` clears it. `between` leaves it unchanged, so that a value
   * that oscillates around its threshold raises one alert. `unknown`: too few samples. `off`: the
   * alert is disabled.
   */
  readonly state: "bad" | "good" | "between" | "unknown" | "off"
  /** Nothing bad happened in the window, even if there are too few samples. */
  readonly quiet: boolean
}

/** The change of an alert's state. */
export type Transition = "raise" | "clear"

/**
 * Returns the transition of an alert after a reading.
 *
 * @param watched whether the owner has watched for a whole window. An owner that has just started
 *   has seen nothing bad yet, but cannot rule it out.
 */
export const transitionOf = (
  isRaised: boolean,
  { quiet, state }: Pick<AlertReading, "quiet" | "state">,
  watched: boolean
): Transition | undefined => {
  if (!isRaised) return state === "bad" ? "raise" : undefined
  if (state === "bad") return undefined
  return state === "good" || state === "off" || (quiet && watched) ? "clear" : undefined
}

interface Measure extends Pick<AlertReading, "level" | "name" | "unit"> {
  readonly threshold: number | undefined
  readonly value: number | undefined
  /** Number of samples behind the value, and the minimum needed. */
  readonly samples: number
  readonly least: number
  readonly isBad: (value: number, threshold: number) => boolean
  readonly isGood: (value: number, threshold: number) => boolean
}

/** Judges a measured value by its threshold. */
export const judged = (measure: Measure): AlertReading => {
  const { isBad, isGood, least, level, name, samples, threshold, unit, value } = measure
  const said = { name, level, unit, ...(value === undefined ? {} : { value }) }
  if (threshold === undefined) return { ...said, threshold: 0, state: "off", quiet: true }
  if (value === undefined) return { ...said, threshold, state: "unknown", quiet: true }
  const quiet = isGood(value, threshold)
  const enough = samples >= least
  const state = !enough ? "unknown" : isBad(value, threshold) ? "bad" : quiet ? "good" : "between"
  return { ...said, threshold, state, quiet }
}

/** Judges a state that is bad or good, whatever its measure. */
export const stateReading = (
  name: AlertName,
  level: AlertReading["level"],
  threshold: number | undefined,
  is: { readonly bad: boolean; readonly good: boolean },
  unit: string
): AlertReading => {
  const said = { name, level, unit, value: is.bad ? 1 : 0, threshold: threshold ?? 0 }
  if (threshold === undefined) return { ...said, state: "off", quiet: true }
  // A state is known at once, even to an owner that has just started: `quiet` is not needed to
  // clear it.
  return { ...said, state: is.bad ? "bad" : is.good ? "good" : "between", quiet: false }
}

/** Returns a reading that may raise an alert, and never clears one. */
export const withoutGood = (reading: AlertReading): AlertReading =>
  reading.state === "good" ? { ...reading, state: "between" } : reading

/** Bad above the threshold, good at half of it. */
export const above = {
  isBad: (value: number, threshold: number) => value > threshold,
  isGood: (value: number, threshold: number) => value <= threshold / 2
}
/** For a share of successes, the distance to 100 % counts. */
export const below = {
  isBad: (value: number, threshold: number) => value < threshold,
  isGood: (value: number, threshold: number) => value >= 100 - (100 - threshold) / 2
}
/** Bad from the threshold on, good at 0. */
export const reaching = {
  isBad: (value: number, threshold: number) => value >= threshold,
  isGood: (value: number) => value === 0
}

/**
 * Alerts about one endpoint or one tenant by severity, the worst first. Those of one rank have the
 * same cause, or say the same of it: none of them is worse news than another.
 */
const ranks: ReadonlyArray<ReadonlyArray<AlertName>> = [
  // Nothing is sent at all.
  ["endpoint-disabled", "endpoint-suspended"],
  ["success-critical"],
  // Deliveries have ended without success.
  ["dead-letters", "tenant-dead-letters"],
  // Deliveries fail: what says most of the cause is first.
  [
    "endpoint-not-found",
    "status-repeated",
    "circuit-opened",
    "permanent-high",
    "success-low",
    "failures-in-row"
  ],
  // Deliveries succeed, but late.
  ["retries-high", "attempts-high", "p99-slow", "median-slow"]
]

const places = ranks.flat()
const rankOf = (name: AlertName): number => ranks.findIndex((names) => names.includes(name))

/** What becomes of the one alert of a group. */
export interface GroupChange {
  /** `replace`: the raised alert goes on under the name of another reading. */
  readonly transition: "raise" | "replace" | "clear"
  /** The reading that is raised, or that was raised and is cleared. */
  readonly reading: AlertReading
  /** The other readings of the group that are bad. */
  readonly also: ReadonlyArray<AlertName>
}

/**
 * Returns the change that readings of one group ask for; undefined if they change nothing. At most
 * one alert of a group is raised: the worst. While it is raised, only one of a worse rank replaces
 * it. When it is over, the worst that is left replaces it.
 *
 * @param raised the name of the group's alert that is raised.
 * @param watched see {@link transitionOf}.
 */
export const groupChange = (
  raised: AlertName | undefined,
  readings: ReadonlyArray<AlertReading>,
  watched: boolean
): GroupChange | undefined => {
  const bad = readings
    .filter(({ state }) => state === "bad")
    .toSorted((a, b) => places.indexOf(a.name) - places.indexOf(b.name))
  const [worst, ...others] = bad
  const also = others.map(({ name }) => name)
  const own = readings.find(({ name }) => name === raised)
  if (own === undefined)
    return worst === undefined ? undefined : { transition: "raise", reading: worst, also }
  const isOver = transitionOf(true, own, watched) === "clear"
  if (worst === undefined)
    return isOver ? { transition: "clear", reading: own, also: [] } : undefined
  return isOver || rankOf(worst.name) < rankOf(own.name)
    ? { transition: "replace", reading: worst, also }
    : undefined
}
