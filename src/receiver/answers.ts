/*
 * What a sender is answered. Senders repeat what gets no 2xx, and take 4xx for final: the receiver's own trouble is
 * always 5xx, and a 2xx is given only for what is stored, done, or of no use to anyone.
 *
 *   stored, done, stale, duplicate       200   204 without a body where the sender wants that
 *   ignored (no work for its type)       200
 *   kept (dead or quarantined)           200   a repeat would end in the same way
 *   refused (not from the sender)        401   never stored
 *   too large                            413
 *   arrives too slowly                   408
 *   no POST                              405
 *   failed (the work of `once` threw)    500   the sender repeats
 *   parsed by the framework before       500   with what to change
 *   could not be verified                503   with Retry-After, such as by a certificate that cannot be fetched
 *   busy, store down, overload, rate     503   with Retry-After; 429 where the sender is known to retry after it
 */
export type Outcome =
  | "stored"
  | "done"
  | "stale"
  | "duplicate"
  | "ignored"
  | "kept"
  | "handshake"
  | "refused"
  | "unverifiable"
  | "too-large"
  | "too-slow"
  | "not-post"
  | "failed"
  | "parsed-before"
  | "busy"
  | "store-unavailable"
  | "overloaded"
  | "rate-exceeded"

export interface Answer {
  readonly outcome: Outcome
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const statuses: Readonly<Record<Outcome, number>> = {
  stored: 200,
  done: 200,
  stale: 200,
  duplicate: 200,
  ignored: 200,
  kept: 200,
  handshake: 200,
  refused: 401,
  unverifiable: 503,
  "too-large": 413,
  "too-slow": 408,
  "not-post": 405,
  failed: 500,
  "parsed-before": 500,
  busy: 503,
  "store-unavailable": 503,
  overloaded: 503,
  "rate-exceeded": 503
}

/** Worst first: a request with several events is answered with the worst of them, so that it is repeated if any needs it. */
const worst: ReadonlyArray<Outcome> = [
  ...(["store-unavailable", "busy", "failed", "kept", "stored", "done", "stale"] as const),
  ...(["duplicate", "ignored"] as const)
]

/** Returns the outcome that stands for those of all events of a request. */
export const worstOf = (outcomes: ReadonlyArray<Outcome>): Outcome =>
  worst.find((outcome) => outcomes.includes(outcome)) ?? "ignored"

/** @param retryAfterMs is rounded up to seconds. */
export const answer = (
  outcome: Outcome,
  text: string = outcome,
  {
    retries429 = false,
    retryAfterMs = 5_000,
    wantsNoContent = false
  }: {
    readonly retries429?: boolean
    readonly retryAfterMs?: number
    readonly wantsNoContent?: boolean
  } = {}
): Answer => {
  const usual = statuses[outcome]
  if (usual === 200 && wantsNoContent) return { outcome, status: 204, headers: {}, body: "" }
  const status = usual === 503 && retries429 && outcome === "rate-exceeded" ? 429 : usual
  return {
    outcome,
    status,
    headers: {
      "content-type": "text/plain; charset=utf-8",
      ...(usual === 503 && { "retry-after": `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}` }),
      ...(outcome === "not-post" && { allow: "POST" })
    },
    body: `${text}\n`
  }
}

/** What the application's developer has to change where a framework has parsed the body. */
export class ParsedBefore extends Error {
  override readonly name = "ParsedBefore"
}

/** Counts an answer, and says so in the log. */
export interface Answered {
  readonly answer: Answer
  readonly latencyMs: number
  readonly type?: string | undefined
  readonly key?: string | undefined
  readonly attempt?: number | undefined
  readonly correlationId?: string | undefined
  readonly error?: string | undefined
}
