/** How an attempt went, as far as it tells how much its receiver has to do. Times in ms since the epoch. */
export interface Sign {
  readonly sentAt: number
  readonly at: number
  /** It said that this is too much (429, 503), or did not answer in time. */
  readonly overloaded: boolean
}

/** Twice as long as at its best, and this much, ms, is slow. */
const grace = 10
/** How long the shortest time counts as what an endpoint can do, ms. */
const memory = 5 * 60_000
const weight = 1 / 8
/** What is left of the limit after an answer that says it is too much, and after slow ones. */
const left = { overloaded: 0.7, slow: 0.9 }

/**
 * How many requests at the same time suit an endpoint: additive increase, multiplicative decrease,
 * as TCP does it (RFC 5681, with the gentler decrease of RFC 9438). Each round trip in which all is
 * well adds one, up to the cap; an answer that says it is too much takes three tenths away, and
 * answers that take more than twice as long as at its best one tenth. What was sent before the last decrease lowers it no further: it met the load of
 * before.
 */
export class AdaptiveLimit {
  #limit: number
  #loweredAt = Number.NEGATIVE_INFINITY
  #usual: number | undefined
  #best = Number.POSITIVE_INFINITY
  /** The best since this memory began, and when that was. */
  #bestNow = Number.POSITIVE_INFINITY
  #since: number | undefined

  /** @param cap with which it begins. */
  constructor(cap: number) {
    this.#limit = cap
  }

  /** Requests at the same time, a whole number from 1 to the cap. */
  get limit(): number {
    return Math.max(1, Math.floor(this.#limit))
  }

  /** Learns from an attempt. */
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
