import type { AttemptOutcome } from "../domain/attempt-outcome.ts"
import { AdaptiveLimit } from "../policy/adaptive-limit.ts"
import type { Rate } from "../policy/rate.ts"
import { TokenBucket } from "../policy/rate.ts"
import type { LiveEndpoint } from "./directory.ts"

const second = 1_000

/** What endpoints that are well let through by their own settings: a rate, a cap, and one that adapts. */
export class Throttles {
  readonly #buckets = new Map<string, { readonly revision: number; readonly bucket: TokenBucket }>()
  readonly #limits = new Map<string, AdaptiveLimit>()

  /** Requests that may be under way. */
  limit({ config, key }: LiveEndpoint): number {
    const { adapt, maxInFlight } = config
    if (adapt !== true) return maxInFlight
    return Math.min(maxInFlight, this.#limits.get(key)?.limit ?? maxInFlight)
  }

  /**
   * Counts one more request against an endpoint's rate; false where it comes too soon.
   *
   * @param now ms since the epoch.
   */
  admit(endpoint: LiveEndpoint, now: number): boolean {
    const { rate } = endpoint.config
    return rate === undefined || this.#bucketOf(endpoint, rate, now).take(now)
  }

  /** How many requests its rate lets begin within a second, 0 where the first of them comes later. */
  soon(endpoint: LiveEndpoint, now: number): number {
    const { rate } = endpoint.config
    if (rate === undefined) return Number.POSITIVE_INFINITY
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

  /** Learns from an answer how much an endpoint takes, where its limit adapts. */
  note({ config, key }: LiveEndpoint, { at, overloaded, result, verdict }: AttemptOutcome): void {
    if (config.adapt !== true) return
    // Other failures say nothing about how much it has to do.
    if (!overloaded && verdict !== "delivered") return
    const limit = this.#limits.get(key) ?? new AdaptiveLimit(config.maxInFlight)
    this.#limits.set(key, limit)
    limit.note({ sentAt: at - result.durationMs, at, overloaded }, config.maxInFlight)
  }

  /** Nothing is remembered of an endpoint. */
  forget(key: string): void {
    this.#buckets.delete(key)
    this.#limits.delete(key)
  }
}
