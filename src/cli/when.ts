import { Duration, Option, Result, Schema } from "effect"
import { PositiveDuration } from "../domain/duration.ts"

/** A time on the command line that is neither ISO 8601 nor a duration. */
export class UnreadableTime extends Schema.TaggedError<UnreadableTime>()("UnreadableTime", {
  text: Schema.String
}) {
  override get message() {
    return `${JSON.stringify(this.text)} is no time: give one such as 2026-03-04T10:30:00Z, or how long ago, such as "15 minutes" or 1h`
  }
}

const decodeDuration = Schema.decodeUnknownOption(PositiveDuration)
const short = /^(\d+(?:\.\d+)?) ?(s|m|min|h|d)$/
const units: Record<string, string> = {
  s: "seconds",
  m: "minutes",
  min: "minutes",
  h: "hours",
  d: "days"
}
const isoDate = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/

/**
 * Reads `2026-03-04T10:30:00Z` (without a zone: local time; a date alone: midnight) or a duration
 * ago, such as `15 minutes` or `15m`.
 *
 * @param now ms since the epoch, as is the result.
 */
export const parseWhen = (text: string, now: number): Result.Result<number, UnreadableTime> => {
  const [, count, unit = ""] = short.exec(text.trim()) ?? []
  const duration = decodeDuration(count === undefined ? text.trim() : `${count} ${units[unit]}`)
  if (Option.isSome(duration)) return Result.succeed(now - Duration.toMillis(duration.value))
  if (!isoDate.test(text.trim())) return Result.fail(new UnreadableTime({ text }))
  const iso = text.trim().replace(" ", "T").replace(",", ".")
  const time = Date.parse(iso.includes("T") ? iso : `${iso}T00:00`)
  return Number.isNaN(time) ? Result.fail(new UnreadableTime({ text })) : Result.succeed(time)
}
