/** Requests per second, and how many may go at once after a pause. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/**
 * The burst of a rate that comes without one: what comes in within a twentieth of a second. So no
 * second sees more than a twentieth above the rate, and timers that come late cost nothing of it.
 */
export const usualBurst = (perSecond: number): number => Math.max(1, Math.ceil(perSecond / 20))

const second = 1_000

/**
 * What bounds the requests to one endpoint: a bucket that holds `burst` tokens and gets `perSecond`
 * of them. It counts the tokens taken since it was last full instead of adding up fractions, so that
 * no error grows with the time. Times in ms since the epoch, or of any clock that does not go back.
 */
export class TokenBucket {
  readonly #rate: Rate
  #fullAt: number
  #taken = 0

  /** @param now when the bucket is full. */
  constructor(rate: Rate, now: number) {
    this.#rate = rate
    this.#fullAt = now
  }

  /** Takes a token, if there is one. */
  take(now: number): boolean {
    this.#refill(now)
    if (this.#tokens(now) < 1) return false
    this.#taken++
    return true
  }

  /** How long until there is a token, in whole ms; 0 if there is one. */
  waitFor(now: number): number {
    this.#refill(now)
    const missing = 1 - this.#tokens(now)
    if (missing <= 0) return 0
    const wait = Math.ceil((missing * second) / this.#rate.perSecond)
    // Rounding may have cut off what the last token lacks.
    return this.#tokens(now + wait) < 1 ? wait + 1 : wait
  }

  #tokens(now: number): number {
    const { burst, perSecond } = this.#rate
    return burst - this.#taken + ((now - this.#fullAt) * perSecond) / second
  }

  #refill(now: number): void {
    // A clock that was put back would otherwise keep the bucket empty for as long.
    if (now >= this.#fullAt && this.#tokens(now) < this.#rate.burst) return
    if (now < this.#fullAt) this.#taken = Math.min(this.#taken, this.#rate.burst)
    else this.#taken = 0
    this.#fullAt = now
  }
}
