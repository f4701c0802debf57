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
   * @returns 0 if it may be made, else how long until the next may, ms.
   */
  take(id: string, perSecond: number): number {
    const now = timers.monotonicMs()
    const known = this.#allowances.get(id)
    const allowance = known ?? { left: perSecond, at: now }
    const grown = allowance.left + ((now - allowance.at) / 1_000) * perSecond
    allowance.left = Math.min(perSecond, grown)
    allowance.at = now
    if (known === undefined) this.#remember(id, allowance)
    if (allowance.left < 1) return ((1 - allowance.left) / perSecond) * 1_000
    allowance.left--
    return 0
  }

  #remember(id: string, allowance: Allowance): void {
    if (this.#allowances.size >= maxRemembered) this.#allowances.clear()
    this.#allowances.set(id, allowance)
  }
}
