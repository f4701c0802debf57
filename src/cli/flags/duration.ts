import { Duration, Option, Schema } from "effect"

const decode = Schema.decodeUnknownOption(Schema.DurationFromString)
const short = /^(\d+(?:\.\d+)?) ?(ms|s|m|min|h|d)$/
const units: Record<string, string> = {
  ms: "millis",
  s: "seconds",
  m: "minutes",
  min: "minutes",
  h: "hours",
  d: "days"
}

/** The input that `readDuration` accepts, for error messages. */
export const durationExpected = "must be a length of time such as '30 seconds', 5m or 72h"

/** Parses `30 seconds`, as Effect writes it, or `30s`. Accepts zero and rejects infinity. */
export const readDuration = (text: string): Duration.Duration | undefined => {
  const trimmed = text.trim()
  const [, count, unit = ""] = short.exec(trimmed) ?? []
  const read = decode(count === undefined ? trimmed : `${count} ${units[unit]}`)
  return Option.getOrUndefined(
    Option.filter(read, (it) => Duration.isFinite(it) && Duration.toMillis(it) >= 0)
  )
}
