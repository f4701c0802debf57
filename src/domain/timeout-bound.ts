import { Duration, Option, Schema } from "effect"
import { PositiveDuration } from "./duration.ts"

/**
 * Longest time-out of an attempt where no operator has set another, ms: a request that is not
 * answered takes up a place in its worker for so long.
 */
export const defaultMaxTimeoutMs = 5 * 60_000
/** Longest time-out that an operator can allow, ms. */
export const highestMaxTimeoutMs = 24 * 60 * 60_000
const lowestMaxTimeoutMs = 1_000

const decode = Schema.decodeUnknownOption(PositiveDuration)

/** Returns a bound in ms; 0 for a text that is none. */
export const timeoutBoundMs = (text: string): number =>
  Option.match(decode(text), { onNone: () => 0, onSome: Duration.toMillis })

/** The longest time-out that endpoints may have, as people write it: "15 minutes". */
export const TimeoutBound = Schema.String.check(
  Schema.makeFilter((text: string) => {
    const ms = timeoutBoundMs(text)
    return ms >= lowestMaxTimeoutMs && ms <= highestMaxTimeoutMs
      ? undefined
      : 'must be a length of time between 1 second and 24 hours, such as "15 minutes"'
  })
)
