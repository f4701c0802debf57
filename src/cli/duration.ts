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

const wholeUnits = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
  ["milli", 1]
] as const

/**
 * Formats a duration (ms) as Effect parses it, in the largest unit that divides it: `90 seconds`.
 */
const durationWords = (ms: number): string => {
  const [name, size] = wholeUnits.find(([, size]) => ms >= size && ms % size === 0) ?? ["milli", 1]
  const count = ms / size
  return `${count} ${name}${count === 1 ? "" : "s"}`
}

/**
 * Returns JSON with durations in words. A schema encodes all durations in ms (`"259200000
 * millis"`).
 */
export const withWords = (json: unknown): unknown => {
  if (typeof json === "string") {
    const ms = /^(\d+) millis$/.exec(json)?.[1]
    return ms === undefined ? json : durationWords(Number(ms))
  }
  if (Array.isArray(json)) return json.map(withWords)
  if (typeof json !== "object" || json === null) return json
  return Object.fromEntries(Object.entries(json).map(([key, value]) => [key, withWords(value)]))
}

/** Formats a duration for people in at most two units: `30 s`, `2 d 12 h`. */
export const durationText = (duration: Duration.Duration): string =>
  spanText(Duration.toMillis(duration))
