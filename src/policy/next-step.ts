import { Effect } from "effect"
import type { StatusRow } from "../domain/delivery.ts"
import type { DeadReason } from "../domain/outcome.ts"
import type { RetrySchedule } from "./backoff.ts"
import { delayAfter } from "./backoff.ts"
import { parseRetryAfter } from "./retry-after.ts"
import type { StatusLimit } from "./status-limit.ts"

/**
 * True where a delivery may no longer be attempted: its attempts begin before its deadline. Times
 * in ms since the epoch.
 */
export const isPastDeadline = ({ deadline }: { readonly deadline: number }, at: number): boolean =>
  at >= deadline

/**
 * The next step of a delivery after a failed attempt. Times in ms since the epoch, `delay` in whole
 * ms. `drawn` is the delay that the policy's backoff gave; absent where the endpoint decided.
 */
export type NextStep =
  | {
      readonly _tag: "Retry"
      readonly at: number
      readonly delay: number
      readonly drawn?: number
    }
  | { readonly _tag: "Dead"; readonly reason: DeadReason }

/** An answer whose status has limits of its own, and the row that it belongs to. */
export interface LimitedAnswer {
  readonly limit: StatusLimit
  readonly row: StatusRow
}

const dead = (reason: DeadReason): NextStep => ({ _tag: "Dead", reason })

/**
 * Decides whether a failed delivery is attempted again or ends.
 *
 * The deadline is set when the round begins and travels with the delivery. It limits the round's
 * duration, not the window of the current policy. The schedule is therefore stepped as if the round
 * had just begun, so that only the attempts can end it. If both limits are reached, the reason is
 * the attempts.
 *
 * A Retry-After lengthens the delay and never shortens it. It is not a draw.
 *
 * A status may have limits of its own, which count its answers in a row: an outage before them uses
 * up none. Their delays begin anew, stretched over the window. Neither its end nor an earlier
 * deadline is missed by the last attempt. A Retry-After beyond the window ends the delivery. Probes
 * are no attempts of the row either, but the row's window goes on: what is not found for so long is
 * given up during an open circuit, too.
 *
 * A failed probe says nothing new about the delivery: only its deadline ends it, and the circuit
 * decides when it is its turn again. So an outage uses up no attempts, however long it lasts.
 */
export const nextStep = Effect.fnUntraced(function* (attempt: {
  readonly schedule: RetrySchedule
  /** Upper bound of a Retry-After, ms. */
  readonly retryAfterCap: number
  readonly verdict: "retry" | "fail"
  /** Attempts made so far in this round, including this one, without probes. */
  readonly attempts: number
  /** The limits of the answered status, and its answers in a row, including this one. */
  readonly limited?: LimitedAnswer | undefined
  /** The delay drawn after the attempt before, ms; undefined if there is none. */
  readonly previousDelay?: number | undefined
  /**
   * Set where the delivery waits for its endpoint instead of its schedule: after a probe, and after
   * a 410 that suspends the endpoint. When the next request is allowed, ms since the epoch.
   */
  readonly nextAllowedAt?: number | undefined
  /** Give-up deadline, ms since the epoch. */
  readonly deadline: number
  /** When the attempt ended, ms since the epoch. */
  readonly now: number
  /** The Retry-After header, unparsed. */
  readonly retryAfter?: string | undefined
}) {
  const { attempts, limited, nextAllowedAt, now, previousDelay: previous } = attempt
  if (attempt.verdict === "fail") return dead("permanent")
  if (limited !== undefined && limited.row.attempts >= limited.limit.attempts)
    return dead("status-limit")
  const after = (made: number) =>
    delayAfter(attempt.schedule, { attempts: made, began: now, now, previous })
  const rowEnd = limited === undefined ? Number.POSITIVE_INFINITY : endOfRow(limited)
  let drawn: number | undefined
  let wait: number
  if (nextAllowedAt === undefined) {
    drawn = yield* after(attempts)
    if (drawn !== undefined && limited !== undefined) drawn = yield* after(limited.row.attempts)
    if (drawn === undefined) return dead("attempts")
    wait =
      limited === undefined
        ? drawn
        : delayInRow(drawn, limited, { deadline: attempt.deadline, now })
  } else wait = Math.ceil(nextAllowedAt - now)
  const asked = parseRetryAfter(attempt.retryAfter, now) ?? 0
  const delay = Math.max(1, wait, Math.min(asked, Math.floor(attempt.retryAfterCap)))
  const at = now + delay
  if (at > rowEnd) return dead("status-limit")
  if (isPastDeadline(attempt, at)) return dead("deadline")
  const retry: NextStep = { _tag: "Retry", at, delay, ...(drawn === undefined ? {} : { drawn }) }
  return retry
})

const endOfRow = ({ limit, row }: LimitedAnswer): number => row.since + Math.floor(limit.windowMs)

/** The part of a row's window that its last attempt keeps away from the deadline, at which none begins. */
const marginOfDeadline = 0.01

/** A delay after the last possible attempt is left as it is, and so leads past the end. */
const delayInRow = (
  drawn: number,
  limited: LimitedAnswer,
  { deadline, now }: { readonly deadline: number; readonly now: number }
): number => {
  const { limit } = limited
  const lastAt = Math.min(
    endOfRow(limited),
    deadline - Math.ceil(limit.windowMs * marginOfDeadline)
  )
  const delay = Math.ceil(drawn * limit.stretch)
  return now < lastAt ? Math.min(delay, lastAt - now) : delay
}
