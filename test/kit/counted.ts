import { Effect } from "effect"
import { prometheusName } from "../../src/metrics/prometheus-text.ts"
import type { WorkerMetrics } from "../../src/metrics/worker-metrics.ts"
import { startedWorker } from "./engine.ts"

/**
 * Returns the sum of a metric over workers, by the labels that are given; of a histogram, its count.
 *
 * @param name as Prometheus has it, without labels.
 */
export const counted = (
  workers: ReadonlyArray<Pick<WorkerMetrics, "families">>,
  name: string,
  labels: Readonly<Record<string, string>> = {}
): number => {
  let sum = 0
  for (const worker of workers)
    for (const family of worker.families()) {
      if (prometheusName(family) !== name) continue
      for (const sample of family.samples) {
        if (Object.entries(labels).some(([key, value]) => sample.labels[key] !== value)) continue
        sum +=
          "value" in sample
            ? sample.value
            : Array.from(sample.counts).reduce((all, count) => all + count, 0)
      }
    }
  return sum
}

/** Starts a worker that counts in `metrics`, and waits until it delivers. */
export const countingWorker = (id: string, metrics: WorkerMetrics) =>
  Effect.tap(startedWorker({ id, metrics, leaseTtl: 2_000 }), ({ delivering }) => delivering)
