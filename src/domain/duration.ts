import { Duration, Schema } from "effect"

/**
 * A length of time as people write it ("30 seconds", "1 hour"): positive and finite.
 * Decodes to a Duration, encodes back to such a string.
 */
export const PositiveDuration = Schema.DurationFromString.check(
  Schema.makeFilter((duration: Duration.Duration) =>
    Duration.isFinite(duration) && Duration.toMillis(duration) >= 1
      ? undefined
      : "must be at least 1 millisecond"
  )
)
