import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

/** The end of the year 9999, ms since the epoch: RFC 3339 has four digits for the year. */
const maxTimeMs = 253_402_300_799_999

const rfc3339 =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/

const within = (ms: number): number => Math.min(Math.max(ms, 0), maxTimeMs)

const daysIn = (year: number, month: number): number =>
  new Date(Date.UTC(year, month, 0)).getUTCDate()

/**
 * Reads a time as RFC 3339 has it, such as `2026-03-04T11:30:00.25+01:00`, to the ms. A time before
 * 1970 counts as its begin, since nothing is as old. Returns undefined for any other text, and for
 * days that no calendar has.
 */
export const readTimeText = (text: string): number | undefined => {
  const match = rfc3339.exec(text.toUpperCase())
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map(Number)
  const [fraction = "", sign, hours = "0", minutes = "0"] = match.slice(7)
  const offset = Number(hours) * 60 + Number(minutes)
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined
  // 60 is a leap second.
  if (hour > 23 || minute > 59 || second > 60 || Number(hours) > 23 || Number(minutes) > 59)
    return undefined
  // Date.UTC takes years below 100 for those of the last century.
  if (year < 100) return 0
  const ms = Number(fraction.slice(0, 3).padEnd(3, "0"))
  const local = Date.UTC(year, month - 1, day, hour, minute, second, ms)
  return within(local - (sign === "-" ? -offset : offset) * 60_000)
}

/** Returns a time in ms since the epoch as RFC 3339 has it: UTC, with ms. */
export const timeText = (ms: number): string => new Date(within(ms)).toISOString()

const expected = "a time such as 2026-03-04T10:30:00Z"

const TimeText = Schema.String.annotate({ format: "date-time" })

// Not a check of the text: the times of each answer would be read again after they are written.
const read = SchemaGetter.transformEffect((text: string, options) => {
  const ms = readTimeText(text)
  return ms === undefined
    ? Effect.fail(new SchemaIssue.InvalidValue({ message: `must be ${expected}` }, text, options))
    : Effect.succeed(ms)
})

/**
 * A time: a number of ms since the epoch, in memory and in what Petrel stores. In the JSON that
 * people and programs ask with and are answered with (`Schema.toCodecJson`), and in a path or query,
 * it is a text as RFC 3339 has it.
 */
export const Timestamp = Schema.declare(
  (value): value is number => typeof value === "number" && Number.isFinite(value),
  {
    expected,
    toCodecJson: () =>
      Schema.link<number>()(TimeText, {
        decode: read,
        encode: SchemaGetter.transform(timeText)
      })
  }
)

/**
 * Returns what makes JSON of a schema's values, as it is answered: times are texts
 * (domain/timestamp.ts), and so are durations that are set.
 */
export const jsonOf = <A extends object, I>(schema: Schema.Codec<A, I>) => {
  const encode = Schema.encodeSync(Schema.toCodecJson(schema))
  return (value: A): Record<string, unknown> => ({ ...Object(encode(value)) })
}
