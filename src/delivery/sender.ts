import { Clock, Effect } from "effect"
import type { Agent } from "undici"
import type { AttemptResult } from "../domain/outcome.ts"
import type { Verdict } from "../domain/retry-policy.ts"
import { classify } from "../policy/classify.ts"
import { attempt } from "./attempt.ts"
import type { LiveEndpoint } from "./directory.ts"
import type { Held } from "./held.ts"

/** What came of an attempt, and when it ended (ms since the epoch). */
export interface Sent {
  readonly result: AttemptResult
  readonly verdict: Verdict
  /** The receiver wants no more of anything. */
  readonly gone: boolean
  readonly at: number
}

const userAgent = "Petrel/0.1"
const defaultContentType = "application/json"

/**
 * Signs a delivery with a fresh timestamp, POSTs it, and judges the answer. The id and the bytes
 * are the same at each attempt.
 *
 * @param number of this attempt within its round, from 1.
 */
export const send = Effect.fnUntraced(function* (
  agent: Agent,
  { body, delivery }: Held,
  endpoint: LiveEndpoint,
  number: number
) {
  const now = yield* Clock.currentTimeMillis
  const headers = endpoint.signer().sign(delivery.event, Math.floor(now / 1000), body, now)
  const { contentType, traceparent, tracestate } = delivery.content
  headers.push("content-type", contentType ?? defaultContentType)
  headers.push("user-agent", userAgent, "petrel-attempt", String(number))
  if (traceparent !== undefined) headers.push("traceparent", traceparent)
  if (tracestate !== undefined) headers.push("tracestate", tracestate)
  const result = yield* attempt(agent, {
    target: endpoint.target,
    headers,
    ownHeaders: endpoint.ownHeaders,
    body,
    timeoutMs: endpoint.timeout,
    redirects: endpoint.config.redirects
  })
  const at = yield* Clock.currentTimeMillis
  return { result, at, ...classify(result, endpoint.policy.statuses) } satisfies Sent
})
