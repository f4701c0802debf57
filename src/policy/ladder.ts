import { Duration, Effect, Random } from "effect"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import { stepsOf, toSchedule } from "./backoff.ts"

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
