import { Duration, Effect, Pull, Random, Schedule } from "effect"
import type { Backoff, Jitter, RetryPolicy } from "../domain/retry-policy.ts"

/**
 * The schedule of a round. Its first step is the beginning of the round, whose request is sent
 * immediately. The next step is the delay after the first attempt, and so on. A schedule whose
 * first step comes after the first attempt would not know when the round began, which is where its
 * window starts. The input of a step is the delay drawn before, ms; undefined before the first.
 */
export type RetrySchedule = Schedule.Schedule<unknown, number | undefined>

/** The minimum and maximum factor that each jitter applies to a nominal delay. */
const spreads: Record<Jitter, readonly [number, number]> = {
  none: [1, 1],
  full: [0, 1],
  equal: [0.5, 1],
  scaled: [0.5, 1.5]
}

/**
 * Returns the minimum and maximum factor that a policy's jitter applies to a nominal delay.
 * `decorrelated` draws its delays itself.
 */
export const jitterRange = ({
  backoff,
  jitter
}: Pick<RetryPolicy, "backoff" | "jitter">): readonly [least: number, most: number] =>
  spreads[backoff.kind === "decorrelated" ? "none" : jitter]

/** At least 1 ms and an integer: the broker ignores a fractional delay. */
const wholeMillis = (millis: number): Duration.Duration =>
  Duration.millis(Math.max(1, Math.ceil(millis)))

/** Keeps no state: the delay drawn before is the input of a step. */
const decorrelated = (base: Duration.Duration, cap: Duration.Duration): RetrySchedule => {
  const least = Duration.toMillis(base)
  const draw = (_now: number, previous: number | undefined) =>
    Effect.map(
      Random.nextBetween(least, Math.max(least, 3 * (previous ?? least))),
      (millis): [unknown, Duration.Duration] => [
        undefined,
        Duration.min(Duration.millis(millis), cap)
      ]
    )
  return Schedule.fromStep(Effect.succeed(draw))
}

const nominal = (backoff: Backoff): RetrySchedule => {
  switch (backoff.kind) {
    case "exponential":
      return Schedule.min([
        Schedule.exponential(backoff.base, backoff.factor),
        Schedule.spaced(backoff.cap)
      ])
    case "linear":
      return Schedule.min([
        Schedule.spaced(backoff.step).pipe(
          Schedule.modifyDelay(({ attempt, duration }) =>
            Effect.succeed(Duration.times(duration, attempt))
          )
        ),
        Schedule.spaced(backoff.cap)
      ])
    case "fixed":
      return Schedule.spaced(backoff.delay)
    case "list": {
      const { delays } = backoff
      return Schedule.forever.pipe(
        Schedule.modifyDelay(({ attempt }) =>
          Effect.succeed(delays[Math.min(attempt, delays.length) - 1] ?? delays[0])
        )
      )
    }
    case "decorrelated":
      return decorrelated(backoff.base, backoff.cap)
  }
}

/**
 * Returns the policy as an Effect Schedule with its jitter, its cap and both limits. The cap bounds
 * the nominal delay; `scaled` jitter may exceed it by half. `decorrelated` includes its own jitter,
 * so the policy's jitter is not applied. Delays are integers in ms, at least 1.
 */
export const toSchedule = (policy: RetryPolicy): RetrySchedule => {
  const { backoff, maxAttempts, window } = policy
  const [least, most] = jitterRange(policy)
  const waits = nominal(backoff).pipe(
    Schedule.modifyDelay(({ duration }) => {
      const millis = Duration.toMillis(duration)
      return least === most
        ? Effect.succeed(wholeMillis(millis))
        : Effect.map(Random.next, (random) =>
            wholeMillis(millis * (least + (most - least) * random))
          )
    })
  )
  return Schedule.duration(Duration.zero).pipe(
    Schedule.concat(waits),
    Schedule.upTo({ times: maxAttempts, duration: window })
  )
}

/**
 * Returns the schedule's steps from its beginning. Each call takes the time of a step (ms since the
 * epoch) and the delay drawn before, and returns the delay in whole ms, or undefined at the end. It
 * never waits itself.
 *
 * @param schedule from {@link toSchedule}.
 */
export const stepsOf = (
  schedule: RetrySchedule
): Effect.Effect<(now: number, previous?: number) => Effect.Effect<number | undefined>> =>
  Effect.map(
    Schedule.toStep(schedule),
    (step) => (now, previous) =>
      Pull.matchEffect(step(now, previous), {
        onSuccess: ([, delay]) => Effect.succeed(Duration.toMillis(delay)),
        onFailure: Effect.failCause,
        onDone: () => Effect.undefined
      })
  )

/**
 * Returns the delay in whole ms after an attempt, or undefined if the policy is exhausted. Replays
 * the schedule from its beginning.
 *
 * @param schedule from {@link toSchedule}.
 * @param round `attempts` made so far, `began` and `now` in ms since the epoch; `previous` is the
 *   delay drawn before, ms, which only `decorrelated` needs. (Default: its base)
 */
export const delayAfter = Effect.fnUntraced(function* (
  schedule: RetrySchedule,
  round: {
    readonly attempts: number
    readonly began: number
    readonly now: number
    readonly previous?: number | undefined
  }
) {
  const step = yield* stepsOf(schedule)
  for (let made = 0; made < round.attempts; made++) {
    if ((yield* step(round.began)) === undefined) return undefined
  }
  return yield* step(round.now, round.previous)
})
