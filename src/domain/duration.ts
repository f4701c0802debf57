import { Duration, Schema, SchemaGetter } from "effect"

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

const DurationInWords = Schema.String.pipe(
  Schema.decodeTo(Schema.DurationFromString, {
    decode: SchemaGetter.passthrough(),
    encode: SchemaGetter.transform(inWords)
  })
).annotate({ expected: 'a length of time such as "30 seconds"' })

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
 * A duration as people write it ("30 seconds", "1 hour"), from 1 ms to 366 days. Decodes to a
 * Duration and encodes to such a string.
 */
export const PositiveDuration = durationBetween([1, "1 millisecond"], longestDuration)
