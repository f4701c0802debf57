import { Duration, Option, Schema } from "effect"
import { spanText } from "../history/span.ts"

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

/** What `readDuration` reads, for whoever gave something else. */
export const durationExpected = "must be a length of time such as '30 seconds', 5m or 72h"

/** Reads `30 seconds`, as Effect writes it, or `30s`. Zero is one, infinity is none. */
export const readDuration = (text: string): Duration.Duration | undefined => {
  const trimmed = text.trim()
  const [, count, unit = ""] = short.exec(trimmed) ?? []
  const read = decode(count === undefined ? trimmed : `${count} ${units[unit]}`)
  return Option.getOrUndefined(
    Option.filter(read, (it) => Duration.isFinite(it) && Duration.toMillis(it) >= 0)
  )
}

const wholeUnits = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
  ["milli", 1]
] as const

/** A length of time (ms) as Effect reads it, in the largest unit that goes into it: `90 seconds`. */
const durationWords = (ms: number): string => {
  const [name, size] = wholeUnits.find(([, size]) => ms >= size && ms % size === 0) ?? ["milli", 1]
  const count = ms / size
  return `${count} ${name}${count === 1 ? "" : "s"}`
}

/** JSON whose durations are in words: a schema encodes them all in ms (`"259200000 millis"`). */
export const withWords = (json: unknown): unknown => {
  if (typeof json === "string") {
    const ms = /^(\d+) millis$/.exec(json)?.[1]
    return ms === undefined ? json : durationWords(Number(ms))
  }
  if (Array.isArray(json)) return json.map(withWords)
  if (typeof json !== "object" || json === null) return json
  return Object.fromEntries(Object.entries(json).map(([key, value]) => [key, withWords(value)]))
}

/** A length of time for people, in at most two units: `30 s`, `2 d 12 h`. */
export const durationText = (duration: Duration.Duration): string =>
  spanText(Duration.toMillis(duration))
