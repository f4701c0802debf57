import { Duration } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"

/** Used if neither the endpoint nor its policy sets a time-out, ms. */
export const defaultTimeoutMs = 30_000
/** Used if neither the endpoint nor its policy sets a connect time-out, ms. */
export const defaultConnectTimeoutMs = 10_000

const chosen = (
  own: Duration.Duration | undefined,
  ofPolicy: Duration.Duration | undefined,
  fallbackMs: number
): number => {
  const given = own ?? ofPolicy
  return given === undefined ? fallbackMs : Duration.toMillis(given)
}

/**
 * Returns the time-out of one attempt, including redirects, ms.
 *
 * @param mostMs the longest that it may be. (Default: as long as it is set)
 */
export const attemptTimeoutMs = (
  { timeout }: Pick<Endpoint, "timeout">,
  policy: Pick<RetryPolicy, "timeout">,
  mostMs = Number.POSITIVE_INFINITY
): number => Math.min(chosen(timeout, policy.timeout, defaultTimeoutMs), mostMs)

/**
 * Returns the time limit of name look-up, TCP and TLS of one connection, ms.
 *
 * @param mostMs the longest that it may be. (Default: as long as it is set)
 */
export const connectTimeoutMs = (
  { connectTimeout }: Pick<Endpoint, "connectTimeout">,
  policy: Pick<RetryPolicy, "connectTimeout">,
  mostMs = Number.POSITIVE_INFINITY
): number =>
  Math.min(chosen(connectTimeout, policy.connectTimeout, defaultConnectTimeoutMs), mostMs)
