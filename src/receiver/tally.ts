import type { Outcome } from "./answers.ts"

/** Upper bounds of the buckets of durations, in seconds. */
export const durationBounds: ReadonlyArray<number> = [
  ...[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
]

/** Durations, counted by bucket. The last bucket has those beyond all bounds. */
export interface Durations {
  readonly buckets: Array<number>
  count: number
  seconds: number
}

/** What ends an attempt at work in the background. */
export type AttemptOutcome = "done" | "stale" | "failed" | "dead" | "lost"

/** What this process has done for one source since its start. */
export interface SourceTally {
  readonly outcomes: Map<Outcome, number>
  readonly statuses: Map<number, number>
  readonly problems: Map<string, number>
  readonly attempts: Map<AttemptOutcome, number>
  readonly answerTimes: Durations
  readonly workTimes: Durations
  /** `once` that took longer than the sender's time-out. */
  slow: number
  quarantined: number
  dead: number
}

const durations = (): Durations => ({
  buckets: Array(durationBounds.length + 1).fill(0),
  count: 0,
  seconds: 0
})

export const observe = (times: Durations, ms: number): void => {
  const seconds = ms / 1_000
  const found = durationBounds.findIndex((bound) => seconds <= bound)
  const bucket = found === -1 ? durationBounds.length : found
  times.buckets[bucket] = (times.buckets[bucket] ?? 0) + 1
  times.count += 1
  times.seconds += seconds
}

export const increment = <K>(counts: Map<K, number>, key: K, by = 1): void => {
  counts.set(key, (counts.get(key) ?? 0) + by)
}

/** What this process has done, by source. */
export type Tally = ReadonlyMap<string, SourceTally>

export const makeTally = (sources: Iterable<string>): Tally =>
  new Map(
    [...sources].map((source) => [
      source,
      {
        outcomes: new Map(),
        statuses: new Map(),
        problems: new Map(),
        attempts: new Map(),
        answerTimes: durations(),
        workTimes: durations(),
        slow: 0,
        quarantined: 0,
        dead: 0
      }
    ])
  )
