import { Duration } from "effect"

/** Between digits, before each group of three that end a number. */
const beforeGroups = /\B(?=(?:\d{3})+$)/g

/**
 * Formats a count, which has no fraction: `1,204`. The first use of `toLocaleString` takes 14 ms of a
 * process's CPU, a twentieth of what starts a worker.
 */
export const countText = (count: number): string => String(count).replace(beforeGroups, ",")

/** Formats a count of things: `1 event`, `1,204 events`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`

/** Returns a share between 0 and 1, to four decimals; null if the whole is 0. */
export const shareOf = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((part / whole) * 10_000) / 10_000

/** Formats a share in percent. Only the whole is 100%, and only nothing is 0%. */
export const percentText = (part: number, whole: number): string => {
  if (part === 0 || part === whole) return part === 0 ? "0%" : "100%"
  const tenths = Math.floor((part / whole) * 1_000) / 10
  return tenths === 0 ? "<0.1%" : `${tenths}%`
}

/** Formats numbers as ranges: `0-3, 5`. */
export const rangesText = (numbers: ReadonlyArray<number>): string => {
  const ranges: Array<[from: number, to: number]> = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last !== undefined && last[1] === number - 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ")
}

const units = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 } as const

const pattern = /^(\d+(?:\.\d+)?) ?(?:([KMGT])?i?B?)$/i

const factors: Record<string, number> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

/** The input that `readBytes` accepts, for error messages. */
export const bytesExpected = "must be a size such as 512MiB, 1GiB or a number of bytes"

/** Parses `1GiB`, `500 MB` or `1048576`. All prefixes are powers of 1024. */
export const readBytes = (text: string): number | undefined => {
  const found = pattern.exec(text.trim())
  if (found === null) return undefined
  const [, count = "", unit = ""] = found
  const bytes = Number(count) * (factors[unit.toUpperCase()] ?? 1)
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : undefined
}

/**
 * Formats a number of bytes in the largest fitting unit, with at most one decimal: `960 KiB`, `1
 * GiB`.
 */
export const bytesText = (bytes: number): string => {
  const [name, size] = Object.entries(units).findLast(([, size]) => bytes >= size) ?? ["B", 1]
  return `${Number((bytes / size).toFixed(1))} ${name}`
}

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const inUnits = (ms: number, unit: readonly [string, number], finer: readonly [string, number]) => {
  const total = Math.round(ms / finer[1])
  const each = unit[1] / finer[1]
  const rest = total % each
  const whole = `${Math.floor(total / each)} ${unit[0]}`
  return rest === 0 ? whole : `${whole} ${rest} ${finer[0]}`
}

/** Formats a duration (ms) in at most two units: `12 ms`, `2.5 s`, `1 h 5 min`. */
export const spanText = (ms: number): string => {
  if (ms < second) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10 * second) return `${Number((ms / second).toFixed(1))} s`
  if (ms < minute) return `${Math.round(ms / second)} s`
  if (ms < hour) return inUnits(ms, ["min", minute], ["s", second])
  if (ms < day) return inUnits(ms, ["h", hour], ["min", minute])
  return inUnits(ms, ["d", day], ["h", hour])
}

const digits = (number: number, count = 2) => String(number).padStart(count, "0")

/** Formats a time (ms since the epoch) in local time, with the date if it is not today's. */
export const localTimeMs = (at: number, now: number): string => {
  const then = new Date(at)
  const time = `${digits(then.getHours())}:${digits(then.getMinutes())}:${digits(then.getSeconds())}.${digits(then.getMilliseconds(), 3)}`
  if (then.toDateString() === new Date(now).toDateString()) return time
  return `${then.getFullYear()}-${digits(then.getMonth() + 1)}-${digits(then.getDate())} ${time}`
}

/**
 * Formats a time (ms since the epoch) to the second; on another day than `now`, with its date.
 */
export const localTime = (at: number, now: number): string =>
  localTimeMs(at, now).replace(/\.\d+$/, "")

/**
 * Formats a time as `localTime` does, and names the zone: what an operation says is also read from the
 * API of a console, on machines in other zones.
 */
export const zonedTime = (at: number, now: number): string => {
  const minutes = -new Date(at).getTimezoneOffset()
  const whole = Math.abs(minutes)
  const offset = `${minutes < 0 ? "-" : "+"}${digits(Math.floor(whole / 60))}:${digits(whole % 60)}`
  return `${localTime(at, now)} UTC${minutes === 0 ? "" : offset}`
}

/** Formats a duration for people in at most two units: `30 s`, `2 d 12 h`. */
export const durationText = (duration: Duration.Duration): string =>
  spanText(Duration.toMillis(duration))
