import { Effect } from "effect"
import type { DeadReason } from "../domain/outcome.ts"
import { delayAfter, type RetrySchedule } from "./backoff.ts"
import { parseRetryAfter } from "./retry-after.ts"

/** What becomes of a delivery whose attempt did not succeed: times in ms since the epoch, `delay` in whole ms. */
export type NextStep =
  | { readonly _tag: "Retry"; readonly at: number; readonly delay: number }
  | { readonly _tag: "Dead"; readonly reason: DeadReason }

const dead = (reason: DeadReason): NextStep => ({ _tag: "Dead", reason })

/**
 * Decides between another attempt and the end.
 *
 * The deadline was set when the round began and travels with the delivery, so it, and not the
 * window that the policy has today, is what ends a round by time. That is why the schedule is
 * stepped as if the round had begun just now: it can then end by its attempts only. Where both
 * ends are reached, the attempts are the reason.
 *
 * A Retry-After lengthens the wait and never shortens it.
 */
export const nextStep = Effect.fnUntraced(function* (attempt: {
  readonly schedule: RetrySchedule
  /** The longest Retry-After that is obeyed, ms. */
  readonly retryAfterCap: number
  readonly verdict: "retry" | "fail"
  /** Made so far in this round, this one included. */
  readonly attempts: number
  /** Give-up deadline, ms since the epoch. */
  readonly deadline: number
  /** When the attempt ended, ms since the epoch. */
  readonly now: number
  /** The header as it came. */
  readonly retryAfter?: string | undefined
}) {
  const { attempts, deadline, now } = attempt
  if (attempt.verdict === "fail") return dead("permanent")
  const backoff = yield* delayAfter(attempt.schedule, { attempts, began: now, now })
  if (backoff === undefined) return dead("attempts")
  const asked = parseRetryAfter(attempt.retryAfter, now) ?? 0
  const delay = Math.max(backoff, Math.min(asked, Math.floor(attempt.retryAfterCap)))
  const at = now + delay
  if (at > deadline) return dead("deadline")
  const retry: NextStep = { _tag: "Retry", at, delay }
  return retry
})
