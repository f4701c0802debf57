import { Duration, Option, Schema } from "effect"
import { readShortDuration } from "../../domain/duration.ts"

const decode = Schema.decodeUnknownOption(Schema.DurationFromString)

/** The input that `readDuration` accepts, for error messages. */
export const durationExpected = "must be a length of time such as '30 seconds', 5m or 72h"

/** Parses `30 seconds`, as Effect writes it, `30s`, `1h 30m`, or `PT30S` of ISO 8601. Accepts zero and rejects infinity. */
export const readDuration = (text: string): Duration.Duration | undefined => {
  const trimmed = text.trim()
  const ms = readShortDuration(trimmed)
  const read = decode(ms === undefined ? trimmed : `${ms} millis`)
  return Option.getOrUndefined(
    Option.filter(read, (it) => Duration.isFinite(it) && Duration.toMillis(it) >= 0)
  )
}

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
