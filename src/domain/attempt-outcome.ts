import type { AttemptResult } from "./outcome.ts"
import type { Verdict } from "./retry-policy.ts"

/** The outcome of an attempt, and when the attempt ended (`at`, ms since the epoch). */
export interface AttemptOutcome {
  /** The part of the result that is kept, without secrets. */
  readonly result: AttemptResult
  readonly verdict: Verdict
  /** The receiver refuses all further deliveries. */
  readonly gone: boolean
  /** The receiver is overloaded: it answered 429 or 503, or timed out. */
  readonly overloaded: boolean
  readonly at: number
  /**
   * Present if the request was a probe: see `isProbe` of policy/circuit.ts. `nextAt` is when the
   * circuit allows the next request, ms since the epoch.
   */
  readonly probe?: { readonly nextAt: number }
}
