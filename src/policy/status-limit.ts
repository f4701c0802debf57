import { Duration } from "effect"
import type { AlertName } from "../domain/alert.ts"
import type { StatusRow } from "../domain/delivery.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import type { AlertReading } from "./alert-reading.ts"
import { ladder } from "./retry-outline.ts"

/** The limits that a policy sets for the answers of one status or class of statuses. */
export interface StatusLimit {
  readonly attempts: number
  /** From the first answer in a row to the last attempt, ms: no longer than the policy's window. */
  readonly windowMs: number
  /** The factor by which the policy's first delays are longer, so that they fill the window. */
  readonly stretch: number
}

/** Long enough to end no ladder. */
const unlimited = Duration.days(366 * 100)

/**
 * Returns the limits of the statuses that have some, by the policy's name for them (`404`, `5xx`).
 *
 * The delays are the policy's own, from its first one, all multiplied so that they add up to the
 * window. Few attempts with the usual delays would be over within minutes, whatever the window.
 * Delays that fill the window already are not shortened: then the window ends the row.
 */
export const statusLimits = (policy: RetryPolicy): ReadonlyMap<string, StatusLimit> => {
  const limits = new Map<string, StatusLimit>()
  for (const [status, rule] of Object.entries(policy.statuses ?? {})) {
    if (typeof rule === "string") continue
    const { attempts, window } = rule.retry
    // Delays that fill a longer window would lead past the deadline: the first answer would be the last.
    const windowMs = Duration.toMillis(Duration.min(window, policy.window))
    const delays = ladder({ ...policy, maxAttempts: attempts, window: unlimited })
    const sum = delays.reduce((total, delay) => total + delay, 0)
    limits.set(status, { attempts, windowMs, stretch: sum === 0 ? 1 : Math.max(1, windowMs / sum) })
  }
  return limits
}

/** Returns the nominal delays of a status's own limit, ms. */
export const statusLadder = (
  policy: RetryPolicy,
  { attempts, stretch, windowMs }: StatusLimit
): ReadonlyArray<number> => {
  const delays: Array<number> = []
  let left = windowMs
  for (const delay of ladder({ ...policy, maxAttempts: attempts, window: unlimited })) {
    const stretched = Math.min(Math.round(delay * stretch), left)
    if (stretched < 1) break
    delays.push(stretched)
    left -= stretched
  }
  return delays
}

/**
 * Returns the row of answers after an attempt; undefined if the answer has no rule, which ends a row.
 *
 * @param status the policy's name for the answered status.
 * @param at when the attempt ended, ms since the epoch.
 */
export const rowAfter = (
  row: StatusRow | undefined,
  status: string | undefined,
  at: number,
  isProbe: boolean
): StatusRow | undefined => {
  if (status === undefined) return undefined
  const counted = isProbe ? 0 : 1
  return row?.status === status
    ? { ...row, attempts: row.attempts + counted }
    : { status, attempts: counted, since: at }
}

/** Answers of an endpoint in a row that one rule of a policy's `statuses` holds for. */
export interface AnswersInARow {
  /** The status or class that the rule names. */
  readonly status: string
  readonly count: number
  /** The number that raises an alert; undefined if none does. */
  readonly alert: number | undefined
}

const names = ["endpoint-not-found", "status-repeated"] as const

/** Returns the name of the alert about answers of a status in a row. */
const nameFor = (status: string): AlertName =>
  status === "404" ? "endpoint-not-found" : "status-repeated"

/**
 * Returns the readings of the answers in a row. An alert is raised at the rule's number, and cleared
 * by any other answer, however long that takes: retries of such an answer may be hours apart.
 *
 * @param inARow `none` if the last answer has no rule, `unknown` to an owner that has seen none.
 * @param isOn false if nobody wants these alerts.
 */
export const rowReadings = (
  inARow: AnswersInARow | "none" | "unknown",
  isOn: boolean
): ReadonlyArray<AlertReading> =>
  names.map((name) => {
    const row = typeof inARow === "object" && nameFor(inARow.status) === name ? inARow : undefined
    const alert = row?.alert
    return {
      ...{ name, level: "warn", unit: "answers", threshold: alert ?? 0, quiet: false },
      ...(row === undefined ? {} : { value: row.count, status: row.status }),
      state: !isOn
        ? "off"
        : inARow === "unknown"
          ? "between"
          : row === undefined || alert === undefined
            ? "good"
            : row.count >= alert
              ? "bad"
              : "between"
    }
  })
