import { type Clock, Effect } from "effect"
import type { Agent } from "undici"
import type { AttemptResult } from "../../domain/outcome.ts"
import type { Verdict } from "../../domain/retry-policy.ts"
import { classify } from "../../policy/classify.ts"
import type { LiveEndpoint } from "../endpoints/directory.ts"
import type { Held } from "../lanes/held.ts"
import { startAttempt } from "./attempt.ts"

/** What came of an attempt, and when it ended (ms since the epoch). */
export interface Sent {
  readonly result: AttemptResult
  readonly verdict: Verdict
  /** The receiver wants no more of anything. */
  readonly gone: boolean
  readonly at: number
}

/** What sends requests, and what tells the time. */
export interface Sender {
  readonly agent: Agent
  readonly clock: Clock.Clock
}

const userAgent = "Petrel/0.1"
const defaultContentType = "application/json"

/**
 * Signs a delivery with a fresh timestamp, POSTs it, and judges the answer. The id and the bytes
 * are the same at each attempt.
 *
 * @param number of this attempt within its round, from 1.
 */
export const send = (
  { agent, clock }: Sender,
  { body, delivery }: Held,
  endpoint: LiveEndpoint,
  number: number
): Effect.Effect<Sent> =>
  Effect.callback((resume) => {
    const now = clock.currentTimeMillisUnsafe()
    const headers = endpoint.signer().sign(delivery.event, Math.floor(now / 1000), body, now)
    const { contentType, traceparent, tracestate } = delivery.content
    headers.push("content-type", contentType ?? defaultContentType)
    headers.push("user-agent", userAgent, "petrel-attempt", String(number))
    if (traceparent !== undefined) headers.push("traceparent", traceparent)
    if (tracestate !== undefined) headers.push("tracestate", tracestate)
    const { target, timeout: timeoutMs, ownHeaders } = endpoint
    const { redirects } = endpoint.config
    const request = { target, headers, ownHeaders, body, timeoutMs, redirects }
    const running = startAttempt(agent, request, (result) =>
      resume(
        Effect.sync(() => ({
          result,
          at: clock.currentTimeMillisUnsafe(),
          ...classify(result, endpoint.policy.statuses)
        }))
      )
    )
    return Effect.sync(() => running.interrupt())
  })
