import type { AttemptResult } from "./outcome.ts"
import type { Verdict } from "./retry-policy.ts"

/** What came of an attempt, and when it ended (ms since the epoch). */
export interface AttemptOutcome {
  /** As far as it is kept, without secrets. */
  readonly result: AttemptResult
  readonly verdict: Verdict
  /** The receiver wants no more of anything. */
  readonly gone: boolean
  /** The receiver has too much to do: it answered 429 or 503, or not in time. */
  readonly overloaded: boolean
  readonly at: number
}
