import type { AttemptResult } from "./outcome.ts"
import type { Verdict } from "./retry-policy.ts"

/** A status or class (`404`, `5xx`) for which a policy has a rule of its own. */
export interface RuledStatus {
  readonly status: string
  /** Answers in a row of an endpoint that raise an alert. */
  readonly alert: number | undefined
}

/** The outcome of an attempt, and when the attempt ended (`at`, ms since the epoch). */
export interface AttemptOutcome {
  /** The part of the result that is kept, without secrets. */
  readonly result: AttemptResult
  readonly verdict: Verdict
  /** The receiver refuses all further deliveries. */
  readonly gone: boolean
  /** Present if the policy has a rule for the answered status. */
  readonly rule?: RuledStatus | undefined
  /** The receiver is overloaded: it answered 429 or 503, or timed out. */
  readonly overloaded: boolean
  readonly at: number
  /**
   * Present if the request was a probe: see `isProbe` of policy/circuit.ts. `nextAt` is when the
   * circuit allows the next request, ms since the epoch.
   */
  readonly probe?: { readonly nextAt: number }
}
