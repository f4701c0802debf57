import { Duration, Schema } from "effect"

/** Longer durations are mistakes, and exceed the range of the broker's timers. */
const maxDurationMs = 366 * 24 * 60 * 60 * 1000

/**
 * A duration as people write it ("30 seconds", "1 hour"), from 1 ms to 366 days. Decodes to a
 * Duration and encodes to such a string.
 */
export const PositiveDuration = Schema.DurationFromString.check(
  Schema.makeFilter((duration: Duration.Duration) =>
    Duration.toMillis(duration) >= 1 && Duration.toMillis(duration) <= maxDurationMs
      ? undefined
      : "must be between 1 millisecond and 366 days"
  )
)
