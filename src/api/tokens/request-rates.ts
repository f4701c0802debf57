import { timers } from "../../time/timers.ts"

/** The requests that a token may still make at once, as of a time. */
interface Allowance {
  left: number
  /** ms of the monotonic clock. */
  at: number
}

/** Tokens whose allowance is remembered. Beyond, all begin anew. */
const maxRemembered = 10_000

/** Bounds the requests of each token: so many per second, and as many at once after a pause. */
export class RequestRates {
  readonly #allowances = new Map<string, Allowance>()

  /**
   * Takes one request of a token.
   *
   * @returns how long until it may be made, ms, 0 for now; and how many more may be made now.
   */
  take(id: string, perSecond: number): { readonly waitMs: number; readonly left: number } {
    const now = timers.monotonicMs()
    const known = this.#allowances.get(id)
    const allowance = known ?? { left: perSecond, at: now }
    const grown = allowance.left + ((now - allowance.at) / 1_000) * perSecond
    allowance.left = Math.min(perSecond, grown)
    allowance.at = now
    if (known === undefined) this.#remember(id, allowance)
    if (allowance.left < 1) return { waitMs: ((1 - allowance.left) / perSecond) * 1_000, left: 0 }
    allowance.left--
    return { waitMs: 0, left: Math.floor(allowance.left) }
  }

  #remember(id: string, allowance: Allowance): void {
    if (this.#allowances.size >= maxRemembered) this.#allowances.clear()
    this.#allowances.set(id, allowance)
  }
}

/** What one token may do, by its name in both headers. */
const policy = '"token"'

/**
 * Returns the headers that say how many requests a token may make, and how many more at once, as
 * draft-ietf-httpapi-ratelimit-headers-11 has them: lists of structured fields (RFC 9651).
 *
 * @param perSecond how many the token may make in a second, and at once after a pause.
 * @param left how many of them it may make now.
 * @param afterSeconds when it may make a further one, where none is left.
 */
export const rateHeaders = (
  perSecond: number,
  left: number,
  afterSeconds = 1
): Readonly<Record<string, string>> => ({
  "ratelimit-policy": `${policy};q=${perSecond};w=1`,
  // What is used is there again within a second.
  ratelimit: `${policy};r=${left};t=${afterSeconds}`
})
