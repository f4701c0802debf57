/** Each bucket ends at this many times its beginning. */
const growth = 1.1
/** The first bucket has what is shorter, ms: no request over a network is. */
const shortestMs = 0.1
/** The last bucket has what is longer than 41 days. */
const lastBucket = 255

const logOfGrowth = Math.log(growth)

/** Returns the bucket of a duration, ms. */
export const bucketOf = (ms: number): number =>
  ms >= shortestMs
    ? Math.min(lastBucket, 1 + Math.floor(Math.log(ms / shortestMs) / logOfGrowth))
    : 0

/**
 * Returns the duration that stands for a bucket, ms: the one that is nearest, in proportion, to all
 * of it, 4.8% at most.
 */
export const durationOf = (bucket: number): number =>
  bucket === 0 ? 0 : (shortestMs * growth ** (bucket - 1) * 2 * growth) / (growth + 1)

/**
 * Durations, counted by buckets of a logarithmic scale: it takes the same memory however many there
 * are, and histograms of parts add up to that of the whole. A quantile is off by 5% at most, or by
 * 0.1 ms.
 */
export class DurationHistogram {
  readonly #counts = new Map<number, number>()

  /** Counts a duration, ms. */
  note(ms: number): void {
    this.count(bucketOf(ms), 1)
  }

  /** Counts so many in a bucket. */
  count(bucket: number, times: number): void {
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + times)
  }

  add(other: DurationHistogram): void {
    for (const [bucket, times] of other.#counts) this.count(bucket, times)
  }

  /** Takes away what another one has counted, which is a part of this one. */
  subtract(other: DurationHistogram): void {
    for (const [bucket, times] of other.#counts) this.count(bucket, -times)
  }

  /** The buckets that are not empty, and how often each was counted, in order. */
  get buckets(): ReadonlyArray<readonly [bucket: number, times: number]> {
    return [...this.#counts].filter(([, times]) => times > 0).sort(([a], [b]) => a - b)
  }

  /**
   * Returns the durations, ms, that these shares of all do not exceed; undefined without any.
   *
   * @param shares from 0 to 1, in order.
   */
  quantiles(shares: ReadonlyArray<number>): ReadonlyArray<number> | undefined {
    const { buckets } = this
    let total = 0
    for (const [, times] of buckets) total += times
    if (total === 0) return undefined
    let next = 0
    let below = 0
    return shares.map((share) => {
      while (next < buckets.length - 1 && below + (buckets[next]?.[1] ?? 0) < share * total) {
        below += buckets[next]?.[1] ?? 0
        next++
      }
      return durationOf(buckets[next]?.[0] ?? 0)
    })
  }
}
