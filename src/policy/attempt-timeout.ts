import { Duration } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"

/** Where neither the endpoint nor its policy says otherwise, ms. */
export const defaultTimeoutMs = 30_000

/** How long one attempt at an endpoint may take, redirects included, ms. */
export const attemptTimeoutMs = (
  { timeout }: Pick<Endpoint, "timeout">,
  policy: Pick<RetryPolicy, "timeout">
): number => {
  const chosen = timeout ?? policy.timeout
  return chosen === undefined ? defaultTimeoutMs : Duration.toMillis(chosen)
}
