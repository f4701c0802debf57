import type { AttemptOutcome } from "../domain/outcome.ts"
import { AdaptiveLimit } from "../policy/adaptive-limit.ts"
import type { Rate } from "../policy/rate.ts"
import { TokenBucket } from "../policy/rate.ts"
import { timers } from "../time/timers.ts"
import type { LiveEndpoint } from "./directory.ts"
import type { HostLimits, HostPlace } from "./host-limits.ts"

const second = 1_000

/**
 * The limits that settings give an endpoint: a rate, a maximum of requests in flight, an adaptive
 * limit, and what it shares with others of its host.
 */
export class Throttles {
  readonly #buckets = new Map<string, { readonly revision: number; readonly bucket: TokenBucket }>()
  readonly #limits = new Map<string, AdaptiveLimit>()
  readonly #hosts: HostLimits

  constructor(hosts: HostLimits) {
    this.#hosts = hosts
  }

  /** Returns the number of requests that may be in flight. */
  limit({ config, key, sharedHost }: LiveEndpoint): number {
    const { adapt, maxInFlight } = config
    const most =
      sharedHost === undefined
        ? maxInFlight
        : Math.min(maxInFlight, this.#hosts.shareOf(sharedHost))
    if (adapt !== true) return most
    return Math.min(most, this.#limits.get(key)?.limit ?? most)
  }

  /**
   * Counts a request against the endpoint's rate and its host's cap. Returns false if one of them
   * does not allow it now; the lane waits in line for its host then.
   */
  admit(endpoint: LiveEndpoint, place: HostPlace): boolean {
    const { config, sharedHost } = endpoint
    // Deliveries to a disabled endpoint end without a request.
    if (sharedHost === undefined || config.disabled !== undefined) return this.#takeToken(endpoint)
    const line = this.#hosts.lineFor(sharedHost, place.lane)
    if (line === undefined || !this.#takeToken(endpoint)) return false
    line.take(place.lane)
    place.hostLine = line
    return true
  }

  #takeToken(endpoint: LiveEndpoint): boolean {
    const { rate } = endpoint.config
    if (rate === undefined) return true
    const now = timers.monotonicMs()
    return this.#bucketOf(endpoint, rate, now).take(now)
  }

  /**
   * Returns how many requests the rate and the host's cap allow within a second; 0 if the first one
   * must wait longer for the rate.
   */
  soon(endpoint: LiveEndpoint): number {
    const { sharedHost } = endpoint
    const soon = this.#withinRate(endpoint)
    // One delivery takes its place in the host's line: more would only take up memory.
    return sharedHost !== undefined && this.#hosts.isFull(sharedHost) ? Math.min(1, soon) : soon
  }

  #withinRate(endpoint: LiveEndpoint): number {
    const { rate } = endpoint.config
    if (rate === undefined) return Number.POSITIVE_INFINITY
    const now = timers.monotonicMs()
    const wait = this.#bucketOf(endpoint, rate, now).waitFor(now)
    return wait > second ? 0 : rate.burst + Math.ceil(rate.perSecond)
  }

  #bucketOf({ key, revision }: LiveEndpoint, rate: Rate, now: number): TokenBucket {
    const known = this.#buckets.get(key)
    if (known?.revision === revision) return known.bucket
    // Full, it would let an endpoint that is changed often have more than its rate.
    const bucket = new TokenBucket(rate, now, known?.bucket.level(now))
    this.#buckets.set(key, { revision, bucket })
    return bucket
  }

  /** Adjusts the adaptive limit of an endpoint that has one, after an answer that has just come. */
  note({ config, key }: LiveEndpoint, { overloaded, result, verdict }: AttemptOutcome): void {
    // Other failures say nothing about the endpoint's load.
    if (!overloaded && verdict !== "delivered") return
    const limit = this.#limits.get(key) ?? new AdaptiveLimit(config.maxInFlight)
    this.#limits.set(key, limit)
    const at = timers.monotonicMs()
    limit.note({ sentAt: at - result.durationMs, at, overloaded }, config.maxInFlight)
  }

  /** Number of endpoints with a rate or an adaptive limit in memory. */
  get size(): number {
    return new Set([...this.#buckets.keys(), ...this.#limits.keys()]).size
  }

  /** Drops the state of an endpoint. */
  forget(key: string): void {
    this.#buckets.delete(key)
    this.#limits.delete(key)
  }
}
