import type { Alert } from "../domain/alert.ts"

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
