import { Option, Schema } from "effect"
import { RateLimit } from "../domain/settings/endpoint-table.ts"

/** Requests per second, and the burst after a pause. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/**
 * Returns the default burst of a rate: the requests of a twentieth of a second. No second then
 * exceeds the rate by more than a twentieth, and late timers do not reduce it.
 */
export const usualBurst = (perSecond: number): number => Math.max(1, Math.ceil(perSecond / 20))

const second = 1_000

/**
 * A token bucket that limits the requests to one endpoint. It holds `burst` tokens and is refilled
 * with `perSecond`. It counts the tokens taken since it was last full instead of adding fractions,
 * so that no rounding error accumulates. Times in ms of a monotonic clock.
 */
export class TokenBucket {
  readonly #rate: Rate
  #fullAt: number
  #taken: number

  /**
   * @param now when the bucket is made.
   * @param level tokens that are in it then; more than it holds are lost. (Default: it is full)
   */
  constructor(rate: Rate, now: number, level: number = rate.burst) {
    this.#rate = rate
    this.#fullAt = now
    this.#taken = rate.burst - Math.min(level, rate.burst)
  }

  /** Returns the tokens that are in it, with the part of the next one. */
  level(now: number): number {
    this.#refill(now)
    return this.#tokens(now)
  }

  /** Takes a token. Returns false if there is none. */
  take(now: number): boolean {
    this.#refill(now)
    if (this.#tokens(now) < 1) return false
    this.#taken++
    return true
  }

  /** Returns the time until a token is available, in whole ms; 0 if one is available now. */
  waitFor(now: number): number {
    this.#refill(now)
    const missing = 1 - this.#tokens(now)
    if (missing <= 0) return 0
    const wait = Math.ceil((missing * second) / this.#rate.perSecond)
    // Rounding may have cut off a part of the last token.
    return this.#tokens(now + wait) < 1 ? wait + 1 : wait
  }

  #tokens(now: number): number {
    const { burst, perSecond } = this.#rate
    return burst - this.#taken + ((now - this.#fullAt) * perSecond) / second
  }

  #refill(now: number): void {
    if (this.#tokens(now) < this.#rate.burst) return
    this.#taken = 0
    this.#fullAt = now
  }
}

const decode = Schema.decodeOption(RateLimit)

const pattern =
  /^(?<count>\d+(?:\.\d+)?) ?(?:\/|per) ?(?<unit>s|sec|second|m|min|minute|h|hour)(?:,? burst (?<burst>\d+))?$/
/** The pattern of what `readRate` accepts, as JSON Schema has it. */
export const ratePattern = `^\\s*${pattern.source.slice(1, -1).replaceAll(/\?<\w+>/g, "?:")}\\s*$`
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
