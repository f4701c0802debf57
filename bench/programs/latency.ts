import { createHistogram } from "node:perf_hooks"

/** A measured latency, ms. */
export interface Latency {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** One in `oneIn` takes longer than `ms`. */
  readonly curve: ReadonlyArray<readonly [oneIn: number, ms: number]>
}

const longest = 10 * 60 * 1e6

/** Ten steps per power of ten. */
const steps = Array.from({ length: 50 }, (_, n) => 10 ** ((n + 1) / 10))

/** Counts latencies to three significant digits, from 1 µs to ten minutes. */
export const makeLatencies = () => {
  const histogram = createHistogram({ lowest: 1, highest: longest, figures: 3 })
  const at = (percentile: number) => histogram.percentile(percentile) / 1000
  return {
    record: (ms: number): void =>
      histogram.record(Math.min(Math.max(Math.round(ms * 1000), 1), longest)),
    reset: (): void => histogram.reset(),
    read: (): Latency => ({
      count: histogram.count,
      p50: at(50),
      p99: at(99),
      p999: at(99.9),
      max: histogram.max / 1000,
      curve: steps.map((oneIn) => [oneIn, at(100 - 100 / oneIn)])
    })
  }
}
