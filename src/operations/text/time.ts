import { Duration } from "effect"
import { momentText } from "../../history/line.ts"
import { spanText } from "../../history/span.ts"

/**
 * Formats a time (ms since the epoch) to the second; on another day than `now`, with its date.
 */
export const moment = (at: number, now: number): string => momentText(at, now).replace(/\.\d+$/, "")

/** Formats a duration for people in at most two units: `30 s`, `2 d 12 h`. */
export const durationText = (duration: Duration.Duration): string =>
  spanText(Duration.toMillis(duration))
