import { Duration, Effect, Random } from "effect"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import { jitterRange, stepsOf, toSchedule } from "./backoff.ts"

const climb = Effect.fnUntraced(function* (policy: RetryPolicy) {
  const window = Duration.toMillis(policy.window)
  const step = yield* stepsOf(toSchedule({ ...policy, jitter: "none" }))
  const rungs: Array<number> = []
  let elapsed = yield* step(0)
  while (elapsed !== undefined) {
    const delay = yield* step(elapsed, rungs.at(-1))
    if (delay === undefined || elapsed + delay > window) break
    rungs.push(delay)
    elapsed += delay
  }
  return rungs
})

/** Decorrelated delays have no nominal value: the middle of their range is used instead. */
const middle: Random.Random = { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 }

/**
 * Returns the nominal delays in ms between the requests of a round, without jitter and with
 * requests that take no time. The policy's attempts and its window limit their number.
 */
export const ladder = (policy: RetryPolicy): ReadonlyArray<number> =>
  Effect.runSync(Effect.provideService(climb(policy), Random.Random, middle))

/**
 * Returns the time from the first to the last request of a round, ms: the sum of its {@link
 * ladder}.
 */
export const totalTime = (policy: RetryPolicy): number =>
  ladder(policy).reduce((sum, delay) => sum + delay, 0)

/** One wait of a policy. Times in ms; moments since the round began, with requests that take none. */
interface OutlinedWait {
  /** The number of the attempt that follows it, from 2. */
  readonly attempt: number
  /** The shortest and the longest delay that may be drawn. */
  readonly least: number
  readonly most: number
  /** When the attempt comes at the earliest and at the latest, if the window lets it. */
  readonly earliest: number
  readonly latest: number
  /** True where the window may end the round before this attempt. */
  readonly mayBeCut: boolean
}

/** What a policy makes of a delivery that always fails. Times in ms. */
interface RetryOutline {
  readonly waits: ReadonlyArray<OutlinedWait>
  readonly maxAttempts: number
  readonly window: number
  /** When the last attempt fails at the earliest and at the latest. */
  readonly givesUp: { readonly earliest: number; readonly latest: number }
  /** What ends the round: its attempts, its window, or either, as the delays are drawn. */
  readonly endedBy: "attempts" | "either" | "window"
}

/** Long enough to end no ladder. */
const unlimited = Duration.days(366 * 100)

/** Returns the shortest and the longest delay after each attempt, whatever the window. */
const rangesOf = (policy: RetryPolicy): ReadonlyArray<readonly [least: number, most: number]> => {
  const { backoff, maxAttempts } = policy
  if (backoff.kind === "decorrelated") {
    const base = Duration.toMillis(backoff.base)
    const cap = Duration.toMillis(backoff.cap)
    return Array.from({ length: maxAttempts - 1 }, (_, n) => [
      whole(Math.min(base, cap)),
      whole(Math.min(base * 3 ** (n + 1), cap))
    ])
  }
  const [least, most] = jitterRange(policy)
  return ladder({ ...policy, window: unlimited }).map((nominal) => [
    whole(nominal * least),
    whole(nominal * most)
  ])
}

/** Delays are whole ms, and at least 1. */
const whole = (ms: number): number => Math.max(1, Math.ceil(ms))

/** Returns what a policy makes of a delivery that always fails, for people to look at. */
export const outlineOf = (policy: RetryPolicy): RetryOutline => {
  const window = Duration.toMillis(policy.window)
  const waits: Array<OutlinedWait> = []
  let [earliest, latest] = [0, 0]
  for (const [least, most] of rangesOf(policy)) {
    earliest += least
    latest += most
    // An attempt at the deadline comes too late.
    if (earliest >= window) break
    const attempt = waits.length + 2
    waits.push({ attempt, least, most, earliest, latest, mayBeCut: latest >= window })
  }
  const { maxAttempts } = policy
  const isWhole = waits.length === maxAttempts - 1
  const last = waits.at(-1)
  const sure = waits.filter(({ mayBeCut }) => !mayBeCut)
  return {
    waits,
    maxAttempts,
    window,
    givesUp: {
      earliest: (last?.mayBeCut === true ? sure.at(-1)?.earliest : last?.earliest) ?? 0,
      latest: Math.min(last?.latest ?? 0, window)
    },
    endedBy: !isWhole ? "window" : last?.mayBeCut === true ? "either" : "attempts"
  }
}
