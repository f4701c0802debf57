import type { AlertName } from "../domain/alert.ts"
import type { AlertReading } from "./alert-reading.ts"
import { transitionOf } from "./alert-reading.ts"

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
