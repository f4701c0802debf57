import { Option, Schema } from "effect"
import { RateLimit } from "../domain/settings/endpoint-table.ts"
import { usualBurst } from "./rate.ts"

const decode = Schema.decodeOption(RateLimit)

const pattern =
  /^(?<count>\d+(?:\.\d+)?) ?(?:\/|per) ?(?<unit>s|sec|second|m|min|minute|h|hour)(?:,? burst (?<burst>\d+))?$/
const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 }

/** The input that `readRate` accepts, for error messages. */
export const rateExpected =
  "must be requests per second, minute or hour such as 20/s, 30/min or '20/s burst 40', from 1/h to 100000/s"

/** Parses `20/s`, `30/min`, `100/h`, optionally with a burst: `20/s burst 40`. */
export const readRate = (text: string): RateLimit | undefined => {
  const { burst, count, unit = "" } = pattern.exec(text.trim())?.groups ?? {}
  const perSecond = Number(count) / (unitSeconds[unit.charAt(0)] ?? 1)
  return Option.getOrUndefined(
    decode({ perSecond, burst: burst === undefined ? usualBurst(perSecond) : Number(burst) })
  )
}

const units = [
  ["s", 1],
  ["min", 60],
  ["h", 3_600]
] as const

/**
 * Formats a rate as `readRate` accepts it, in a unit in which it is an integer, if there is one.
 */
export const rateText = ({ burst, perSecond }: RateLimit): string => {
  const isWhole = (count: number) => Math.abs(count - Math.round(count)) < 1e-9 * count
  const [unit, seconds] = units.find(([, seconds]) => isWhole(perSecond * seconds)) ?? units[0]
  const rate = `${Number((perSecond * seconds).toPrecision(6))}/${unit}`
  return burst === usualBurst(perSecond) ? rate : `${rate} burst ${burst}`
}
