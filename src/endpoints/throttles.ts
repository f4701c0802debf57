import type { AttemptOutcome } from "../domain/attempt-outcome.ts"
import { AdaptiveLimit } from "../policy/adaptive-limit.ts"
import type { Rate } from "../policy/rate.ts"
import { TokenBucket } from "../policy/rate.ts"
import { timers } from "../time/timers.ts"
import type { LiveEndpoint } from "./directory.ts"

const second = 1_000

/**
 * The limits that an endpoint's own settings give it: a rate, a maximum of requests in flight, and
 * an adaptive limit.
 */
export class Throttles {
  readonly #buckets = new Map<string, { readonly revision: number; readonly bucket: TokenBucket }>()
  readonly #limits = new Map<string, AdaptiveLimit>()

  /** Returns the number of requests that may be in flight. */
  limit({ config, key }: LiveEndpoint): number {
    const { adapt, maxInFlight } = config
    if (adapt !== true) return maxInFlight
    return Math.min(maxInFlight, this.#limits.get(key)?.limit ?? maxInFlight)
  }

  /**
   * Counts a request against the endpoint's rate; returns false if the rate does not allow it now.
   */
  admit(endpoint: LiveEndpoint): boolean {
    const { rate } = endpoint.config
    if (rate === undefined) return true
    const now = timers.monotonicMs()
    return this.#bucketOf(endpoint, rate, now).take(now)
  }

  /**
   * Returns how many requests the rate allows within a second; 0 if the first one must wait longer.
   */
  soon(endpoint: LiveEndpoint): number {
    const { rate } = endpoint.config
    if (rate === undefined) return Number.POSITIVE_INFINITY
    const now = timers.monotonicMs()
    const wait = this.#bucketOf(endpoint, rate, now).waitFor(now)
    return wait > second ? 0 : rate.burst + Math.ceil(rate.perSecond)
  }

  #bucketOf({ key, revision }: LiveEndpoint, rate: Rate, now: number): TokenBucket {
    const known = this.#buckets.get(key)
    if (known?.revision === revision) return known.bucket
    const bucket = new TokenBucket(rate, now)
    this.#buckets.set(key, { revision, bucket })
    return bucket
  }

  /** Adjusts an adaptive limit after an answer that has just come. */
  note({ config, key }: LiveEndpoint, { overloaded, result, verdict }: AttemptOutcome): void {
    if (config.adapt !== true) return
    // Other failures say nothing about the endpoint's load.
    if (!overloaded && verdict !== "delivered") return
    const limit = this.#limits.get(key) ?? new AdaptiveLimit(config.maxInFlight)
    this.#limits.set(key, limit)
    const at = timers.monotonicMs()
    limit.note({ sentAt: at - result.durationMs, at, overloaded }, config.maxInFlight)
  }

  /** Drops the state of an endpoint. */
  forget(key: string): void {
    this.#buckets.delete(key)
    this.#limits.delete(key)
  }
}
