import { Effect, Schema } from "effect"
import { PositiveDuration } from "./duration.ts"
import { ErrorClass, ErrorVerdict, errorFamilies, Verdict } from "./outcome.ts"
import { everyKey } from "./record.ts"

const Factor = Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 100 }))

/** How the nominal delay before the next attempt grows with the number of attempts. */
export const Backoff = Schema.Union([
  /** `min(base × factor^(n−1), cap)` after attempt n. */
  Schema.Struct({
    kind: Schema.Literal("exponential"),
    base: PositiveDuration,
    factor: Factor,
    cap: PositiveDuration
  }),
  /** `min(step × n, cap)` after attempt n. */
  Schema.Struct({ kind: Schema.Literal("linear"), step: PositiveDuration, cap: PositiveDuration }),
  /** A constant delay. */
  Schema.Struct({ kind: Schema.Literal("fixed"), delay: PositiveDuration }),
  /** Delay n after attempt n; the last one repeats. */
  Schema.Struct({
    kind: Schema.Literal("list"),
    delays: Schema.NonEmptyArray(PositiveDuration)
  }),
  /**
   * Random between base and three times the delay drawn before, at most cap; the first between base
   * and three times base. Needs no further jitter.
   */
  Schema.Struct({
    kind: Schema.Literal("decorrelated"),
    base: PositiveDuration,
    cap: PositiveDuration
  })
]).annotate({
  identifier: "Backoff",
  description: "How the delay before the next attempt grows with the number of attempts."
})
export type Backoff = typeof Backoff.Type

/** How a nominal delay d is spread: none d, full 0..d, equal d/2..d, scaled d × 0.5..1.5. */
export const Jitter = Schema.Literals(["none", "full", "equal", "scaled"])
export type Jitter = typeof Jitter.Type

/**
 * Retries of a status with limits of their own, shorter than the policy's: an answer that may pass,
 * but seldom does. Both count the answers with the status that follow each other in a round.
 */
export const StatusRule = Schema.Struct({
  retry: Schema.Struct({
    /** Requests that are answered so, including the first. Probes of a circuit do not count. */
    attempts: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 })),
    /** From the first such answer to the last attempt. The delays are stretched to fill it. */
    window: PositiveDuration
  }),
  /** Raises an alert at so many such answers of the endpoint in a row. (Default: none) */
  alert: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 })))
}).annotate({
  identifier: "StatusRule",
  description: "Retries of a status with limits of their own, shorter than the policy's."
})
export type StatusRule = typeof StatusRule.Type

const statusKeyProblem = (key: string): string | undefined =>
  /^([1-5]\d\d|[1-5]xx)$/.test(key) ? undefined : 'must be a status ("404") or a class ("4xx")'

const errorKeys: ReadonlySet<string> = new Set([
  ...ErrorClass.literals,
  ...Object.keys(errorFamilies)
])

const errorKeyProblem = (key: string): string | undefined =>
  errorKeys.has(key) ? undefined : `must be one of ${[...errorKeys].join(", ")}`

/** When to retry and when to stop, as a value in an endpoint's configuration. */
export const RetryPolicy = Schema.Struct({
  backoff: Backoff,
  jitter: Jitter,
  /** Requests in a round, including the first. */
  maxAttempts: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 })),
  /** Time from the start of the round to its give-up deadline. */
  window: PositiveDuration,
  /** Upper bound of a Retry-After; a longer one is cut to it. (Default: 24 hours) */
  retryAfterCap: PositiveDuration.pipe(Schema.withDecodingDefaultKey(Effect.succeed("24 hours"))),
  /** Time-out of a whole attempt. Used if the endpoint sets none. */
  timeout: Schema.optionalKey(PositiveDuration),
  /** Time limit of name look-up, TCP and TLS. Used if the endpoint sets none. */
  connectTimeout: Schema.optionalKey(PositiveDuration),
  /**
   * Overrides of the classification, by status or class: `{"404":"fail","5xx":"retry"}`, or
   * `{"404":{"retry":{"attempts":5,"window":"6 hours"},"alert":3}}`.
   */
  statuses: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Union([Verdict, StatusRule])).check(
      everyKey(statusKeyProblem)
    )
  ),
  /**
   * The same by error class or family: `{"certificate":"fail","connection":"retry"}`. `connection`
   * stands for its whole family, as `4xx` does for statuses.
   */
  errors: Schema.optionalKey(
    Schema.Record(Schema.String, ErrorVerdict).check(everyKey(errorKeyProblem))
  )
}).annotate({
  identifier: "RetryPolicy",
  description: "When to retry, and when to stop."
})
export type RetryPolicy = typeof RetryPolicy.Type
export type RetryPolicyJson = typeof RetryPolicy.Encoded
