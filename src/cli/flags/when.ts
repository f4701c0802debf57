import { Duration } from "effect"
import { readDuration } from "./duration.ts"

const isoDate =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?))?$/

/** The input that `parseWhen` accepts, for error messages. */
export const whenExpected =
  'must be a time such as 2026-03-04T10:30:00Z, or how long ago, such as "15 minutes" or 1h'

/**
 * Parses `2026-03-04T10:30:00Z` (without a zone: local time; a date alone: midnight) or a duration
 * ago, such as `15 minutes` or `15m`.
 *
 * @param now ms since the epoch, like the result.
 */
export const parseWhen = (text: string, now: number): number | undefined => {
  const trimmed = text.trim()
  const ago = readDuration(trimmed)
  if (ago !== undefined) return now - Duration.toMillis(ago)
  const [, date, time = "00:00"] = isoDate.exec(trimmed) ?? []
  const at = Date.parse(`${date}T${time}`)
  return Number.isNaN(at) ? undefined : at
}
