import { Duration } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"

/** Used if neither the endpoint nor its policy sets a time-out, ms. */
export const defaultTimeoutMs = 30_000

/** Returns the time-out of one attempt, including redirects, ms. */
export const attemptTimeoutMs = (
  { timeout }: Pick<Endpoint, "timeout">,
  policy: Pick<RetryPolicy, "timeout">
): number => {
  const chosen = timeout ?? policy.timeout
  return chosen === undefined ? defaultTimeoutMs : Duration.toMillis(chosen)
}
