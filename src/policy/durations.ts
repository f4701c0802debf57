/** Steps per doubling of the duration: each step is a fifth longer than the previous one. */
const perDoubling = 4
/** The last step holds all longer durations: 2^31 ms, 24 days. */
const lastStep = 31 * perDoubling

/**
 * Returns the step of a logarithmic scale for a duration (ms). Durations below 1 ms share one step.
 */
export const stepOf = (ms: number): number =>
  ms < 1 ? 0 : Math.min(lastStep, 1 + Math.floor(Math.log2(ms) * perDoubling))

/** Returns the start of a step, ms. */
const startOf = (step: number): number => (step === 0 ? 0 : 2 ** ((step - 1) / perDoubling))

/**
 * Returns a quantile of durations (ms), accurate to about a tenth; undefined without durations.
 *
 * @param counts number of durations in each step.
 * @param share from 0 to 1: 0.5 for the median.
 */
export const quantile = (counts: ReadonlyArray<number>, share: number): number | undefined => {
  let total = 0
  for (const count of counts) total += count
  if (total === 0) return undefined
  const rank = share * total
  let below = 0
  // No iterator: an owner of many endpoints runs this for each of them.
  for (let step = 0; step < counts.length; step++) {
    const count = counts[step] ?? 0
    if (count > 0 && below + count >= rank) {
      const start = startOf(step)
      return start + ((startOf(step + 1) - start) * (rank - below)) / count
    }
    below += count
  }
  return startOf(counts.length)
}

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
