import { Duration, Schema, SchemaGetter } from "effect"
import { documentedAs } from "./documented-check.ts"

/** Longer durations are mistakes, and exceed the range of the broker's timers. */
export const longestDuration = [366 * 24 * 60 * 60 * 1000, "366 days"] as const

const wholeUnits = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000]
] as const

/** Returns `90 seconds` for `90000 millis`, as Effect encodes it: the largest unit that divides it. */
const inWords = (encoded: string): string => {
  const ms = Number(/^(\d+) millis$/.exec(encoded)?.[1] ?? Number.NaN)
  const [name, size] = wholeUnits.find(([, size]) => ms >= size && ms % size === 0) ?? []
  if (name === undefined || size === undefined) return encoded
  const count = ms / size
  return `${count} ${name}${count === 1 ? "" : "s"}`
}

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000
}
const number = "\\d+(?:\\.\\d+)?"
const shortPart = new RegExp(`(${number}) ?(ms|s|min|m|h|d|w)`, "g")
const short = new RegExp(`^(?:${number} ?(?:ms|s|min|m|h|d|w) ?)+$`)
const iso8601 = new RegExp(
  `^P(?!$)(?:(${number})W)?(?:(${number})D)?(?:T(?=\\d)(?:(${number})H)?(?:(${number})M)?(?:(${number})S)?)?$`
)

/**
 * Reads a duration such as `5m`, `1h 30m` or, as ISO 8601 has it, `PT1H30M`, in ms. Years and months
 * of ISO 8601 are of no fixed length: it refuses them. Returns undefined for any other text.
 */
export const readShortDuration = (text: string): number | undefined => {
  const iso = iso8601.exec(text.toUpperCase())
  if (iso !== null)
    return ["w", "d", "h", "m", "s"].reduce(
      (sum, unit, index) => sum + Number(iso[index + 1] ?? 0) * (unitMs[unit] ?? 0),
      0
    )
  if (!short.test(text)) return undefined
  return [...text.matchAll(shortPart)].reduce(
    (sum, [, count, unit = ""]) => sum + Number(count) * (unitMs[unit] ?? 0),
    0
  )
}

const normalised = (text: string): string => {
  const ms = readShortDuration(text)
  return ms === undefined ? text : `${ms} millis`
}

/** What the document says of a duration: a longer or shorter one than is taken has this form, too. */
export const durationText = documentedAs({
  pattern:
    "^(?:-?\\d+(?:\\.\\d+)?\\s+(?:nano|micro|milli|second|minute|hour|day|week)s?|(?:\\d+(?:\\.\\d+)? ?(?:ms|s|min|m|h|d|w) ?)+|[Pp][0-9.WwDdTtHhMmSs]+)$",
  examples: ["30 seconds", "5m", "PT1H30M"]
})

const DurationInWords = Schema.String.check(durationText)
  .pipe(
    Schema.decodeTo(Schema.DurationFromString, {
      decode: SchemaGetter.transform(normalised),
      encode: SchemaGetter.transform(inWords)
    })
  )
  .annotate({ expected: 'a length of time such as "30 seconds"' })

/** Returns a schema of durations between two of them. The ends are told by their words. */
export const durationBetween = (least: readonly [ms: number, words: string], most: typeof least) =>
  DurationInWords.check(
    Schema.makeFilter((duration: Duration.Duration) =>
      Duration.toMillis(duration) >= least[0] && Duration.toMillis(duration) <= most[0]
        ? undefined
        : `must be between ${least[1]} and ${most[1]}`
    )
  )

/**
 * A duration as people write it ("30 seconds", "1 hour"), from 1 ms to 366 days. Decodes such texts,
 * short ones (`5m`, `1h 30m`) and those of ISO 8601 (`PT5M`) to a Duration, and encodes to the first.
 */
export const PositiveDuration = durationBetween([1, "1 millisecond"], longestDuration)

/**
 * A length of time that follows from durations that are set, such as a wait of a retry policy: a number
 * of ms in memory, and a text in words ("30 seconds") where it is shown. It may be 0.
 */
export const SpanMs = DurationInWords.pipe(
  Schema.decodeTo(Schema.Number, {
    decode: SchemaGetter.transform(Duration.toMillis),
    encode: SchemaGetter.transform(Duration.millis)
  })
)
