import { Duration } from "effect"
import type { StatusRow } from "../domain/delivery.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import { ladder } from "./ladder.ts"

/** The limits that a policy sets for the answers of one status or class of statuses. */
export interface StatusLimit {
  readonly attempts: number
  /** From the first answer in a row to the last attempt, ms. */
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
    const windowMs = Duration.toMillis(window)
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
