/** The outcome of an attempt as a sign of its receiver's load. Times in ms of a monotonic clock. */
interface Sign {
  readonly sentAt: number
  readonly at: number
  /** The receiver answered 429 or 503, or timed out. */
  readonly overloaded: boolean
}

/** Answers are slow if their average time exceeds twice the best time plus this many ms. */
const grace = 10
/** How long the best time remains the reference, ms. */
const memory = 5 * 60_000
const weight = 1 / 8
/** The factor of the limit after an overloaded answer, and after slow answers. */
const left = { overloaded: 0.7, slow: 0.9 }

/**
 * Limits the concurrent requests to an endpoint by additive increase and multiplicative decrease,
 * as TCP does (RFC 5681, with the gentler decrease of RFC 9438). Each round trip without problems
 * adds one, up to the cap. An overloaded answer subtracts three tenths. Answers that take more than
 * twice the best time subtract one tenth. Requests sent before the last decrease do not decrease
 * the limit again, since they met the previous load.
 */
export class AdaptiveLimit {
  #limit: number
  #loweredAt = Number.NEGATIVE_INFINITY
  #usual: number | undefined
  #best = Number.POSITIVE_INFINITY
  /** The best time of the current period, and when the period began. */
  #bestNow = Number.POSITIVE_INFINITY
  #since: number | undefined

  /** @param cap the initial limit. */
  constructor(cap: number) {
    this.#limit = cap
  }

  /** Concurrent requests, an integer from 1 to the cap. */
  get limit(): number {
    return Math.max(1, Math.floor(this.#limit))
  }

  /** Records the outcome of an attempt. */
  note({ at, overloaded, sentAt }: Sign, cap: number): void {
    const isNews = sentAt >= this.#loweredAt
    if (overloaded) {
      if (isNews) this.#lower(left.overloaded, at)
      return
    }
    if (this.#isSlow(at - sentAt, at)) {
      if (isNews) this.#lower(left.slow, at)
      return
    }
    this.#limit = Math.min(cap, this.#limit + 1 / this.#limit)
  }

  #lower(factor: number, at: number): void {
    this.#limit = Math.max(1, this.#limit * factor)
    this.#loweredAt = at
  }

  #isSlow(ms: number, at: number): boolean {
    this.#usual = this.#usual === undefined ? ms : this.#usual + (ms - this.#usual) * weight
    this.#since ??= at
    if (at - this.#since > memory) {
      this.#best = this.#bestNow
      this.#bestNow = Number.POSITIVE_INFINITY
      this.#since = at
    }
    this.#bestNow = Math.min(this.#bestNow, this.#usual)
    const best = Math.min(this.#best, this.#bestNow)
    return this.#usual > 2 * best + grace
  }
}
