import { Duration } from "effect"
import type { RetryPolicy } from "../../domain/retry-policy.ts"
import { spanText } from "../../history/span.ts"
import { ladder, totalTime } from "../../policy/ladder.ts"

/** What ends sooner is over before somebody who sleeps or travels can repair it, ms. */
const fewHoursMs = 4 * 60 * 60_000

/**
 * Returns a warning about a policy that gives up within a few hours, as the rest of a sentence about
 * it; undefined for all others. The window ends every delivery. The attempts alone do not: probes
 * of an open circuit use up none.
 */
export const shortPolicy = (policy: RetryPolicy): string | undefined => {
  const { maxAttempts, window } = policy
  const windowMs = Duration.toMillis(window)
  if (windowMs < fewHoursMs)
    return `gives up after ${spanText(windowMs)}: what is down for longer loses events to the dead letters`
  const takesMs = totalTime(policy)
  // Fewer delays: the window ends the round.
  if (takesMs >= fewHoursMs || ladder(policy).length < maxAttempts - 1) return undefined
  const attempts =
    maxAttempts === 1 ? "a single attempt" : `${maxAttempts} attempts within ${spanText(takesMs)}`
  return `makes ${attempts}: what fails for longer is dead-lettered, unless the circuit opens before`
}
