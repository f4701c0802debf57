import type { Waiting } from "./store.ts"
import { type Durations, durationBounds, type Tally } from "./tally.ts"

const escaped = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const labels = (all: Readonly<Record<string, string>>): string =>
  `{${Object.entries(all)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(",")}}`

interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const family = (
  name: string,
  type: "counter" | "gauge",
  help: string,
  samples: ReadonlyArray<Sample>
): string =>
  [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map((sample) => `${name}${labels(sample.labels)} ${sample.value}`)
  ].join("\n")

const histogram = (
  name: string,
  help: string,
  all: ReadonlyArray<{ readonly source: string; readonly times: Durations }>
): string =>
  [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} histogram`,
    ...all.flatMap(({ source, times }) => {
      let sum = 0
      const lines = durationBounds.map((bound, at) => {
        sum += times.buckets[at] ?? 0
        return `${name}_bucket${labels({ source, le: `${bound}` })} ${sum}`
      })
      return [
        ...lines,
        `${name}_bucket${labels({ source, le: "+Inf" })} ${times.count}`,
        `${name}_sum${labels({ source })} ${times.seconds}`,
        `${name}_count${labels({ source })} ${times.count}`
      ]
    })
  ].join("\n")

/** Returns the figures of this process, and those of the store, as Prometheus reads them. */
export const prometheusText = (
  tally: Tally,
  inFlight: number,
  waiting: ReadonlyArray<Waiting>
): string => {
  const all = [...tally].map(([source, counts]) => ({ source, counts }))
  const counted = <K extends string | number>(
    label: string,
    of: (counts: (typeof all)[number]["counts"]) => ReadonlyMap<K, number>
  ): ReadonlyArray<Sample> =>
    all.flatMap(({ counts, source }) =>
      [...of(counts)].map(([key, value]) => ({ labels: { source, [label]: `${key}` }, value }))
    )
  const perSource = (of: (counts: (typeof all)[number]["counts"]) => number) =>
    all.map(({ counts, source }) => ({ labels: { source }, value: of(counts) }))
  const inStore = (of: (one: Waiting) => number) =>
    waiting.map((one) => ({ labels: { source: one.source }, value: of(one) }))
  return `${[
    family(
      "petrel_receiver_receipts_total",
      "counter",
      "Requests by what became of them.",
      counted("outcome", ({ outcomes }) => outcomes)
    ),
    family(
      "petrel_receiver_answers_total",
      "counter",
      "Answers by HTTP status.",
      counted("status", ({ statuses }) => statuses)
    ),
    family(
      "petrel_receiver_verification_failures_total",
      "counter",
      "Requests that were not from the sender, or not from now.",
      counted("problem", ({ problems }) => problems)
    ),
    family(
      "petrel_receiver_attempts_total",
      "counter",
      "Attempts at work of stored events.",
      counted("outcome", ({ attempts }) => attempts)
    ),
    family(
      "petrel_receiver_slow_total",
      "counter",
      "Work of once that took longer than the sender waits.",
      perSource(({ slow }) => slow)
    ),
    family(
      "petrel_receiver_dead_total",
      "counter",
      "Events whose work failed for good.",
      perSource(({ dead }) => dead)
    ),
    family(
      "petrel_receiver_quarantined_total",
      "counter",
      "Requests that were verified and not readable.",
      perSource(({ quarantined }) => quarantined)
    ),
    histogram(
      "petrel_receiver_answer_seconds",
      "From a request's last byte to its answer.",
      all.map(({ counts, source }) => ({ source, times: counts.answerTimes }))
    ),
    histogram(
      "petrel_receiver_work_seconds",
      "Attempts at work of stored events.",
      all.map(({ counts, source }) => ({ source, times: counts.workTimes }))
    ),
    family("petrel_receiver_requests_in_flight", "gauge", "Requests under way.", [
      { labels: {}, value: inFlight }
    ]).replace("{} ", " "),
    family(
      "petrel_receiver_waiting",
      "gauge",
      "Stored events that wait for their work.",
      inStore(({ received }) => received)
    ),
    family(
      "petrel_receiver_dead",
      "gauge",
      "Dead events that wait for a person.",
      inStore(({ dead }) => dead)
    ),
    family(
      "petrel_receiver_quarantined",
      "gauge",
      "Quarantined requests that wait for a person.",
      inStore(({ quarantined }) => quarantined)
    ),
    family(
      "petrel_receiver_oldest_waiting_seconds",
      "gauge",
      "How long the oldest stored event waits for its work.",
      inStore(({ oldestWaitsMs }) => oldestWaitsMs / 1_000)
    )
  ].join("\n")}\n`
}
