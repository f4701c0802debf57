import { Effect } from "effect"
import type { DeadReason } from "../domain/outcome.ts"
import { delayAfter, type RetrySchedule } from "./backoff.ts"
import { isPastDeadline } from "./deadline.ts"
import { parseRetryAfter } from "./retry-after.ts"

/**
 * The next step of a delivery after a failed attempt. Times in ms since the epoch, `delay` in whole
 * ms.
 */
export type NextStep =
  | { readonly _tag: "Retry"; readonly at: number; readonly delay: number }
  | { readonly _tag: "Dead"; readonly reason: DeadReason }

const dead = (reason: DeadReason): NextStep => ({ _tag: "Dead", reason })

/**
 * Decides whether a failed delivery is attempted again or ends.
 *
 * The deadline is set when the round begins and travels with the delivery. It limits the round's
 * duration, not the window of the current policy. The schedule is therefore stepped as if the round
 * had just begun, so that only the attempts can end it. If both limits are reached, the reason is
 * the attempts.
 *
 * A Retry-After lengthens the delay and never shortens it.
 */
export const nextStep = Effect.fnUntraced(function* (attempt: {
  readonly schedule: RetrySchedule
  /** Upper bound of a Retry-After, ms. */
  readonly retryAfterCap: number
  readonly verdict: "retry" | "fail"
  /** Attempts made so far in this round, including this one. */
  readonly attempts: number
  /** Give-up deadline, ms since the epoch. */
  readonly deadline: number
  /** When the attempt ended, ms since the epoch. */
  readonly now: number
  /** The Retry-After header, unparsed. */
  readonly retryAfter?: string | undefined
}) {
  const { attempts, now } = attempt
  if (attempt.verdict === "fail") return dead("permanent")
  const backoff = yield* delayAfter(attempt.schedule, { attempts, began: now, now })
  if (backoff === undefined) return dead("attempts")
  const asked = parseRetryAfter(attempt.retryAfter, now) ?? 0
  const delay = Math.max(backoff, Math.min(asked, Math.floor(attempt.retryAfterCap)))
  const at = now + delay
  if (isPastDeadline(attempt, at)) return dead("deadline")
  const retry: NextStep = { _tag: "Retry", at, delay }
  return retry
})
