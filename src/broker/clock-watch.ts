import { Clock, Effect, Queue, Schedule } from "effect"
import type { ClockState } from "../policy/clock-skew.ts"
import { clockState, differs, skewMs } from "../policy/clock-skew.ts"
import { clockSteps, seenClockSteps } from "../time/elapsed.ts"
import { timers } from "../time/timers.ts"
import { Broker } from "./broker.ts"

/** Interval at which the clock is compared with the broker's, ms. */
const compareEveryMs = 5_000
/** Interval at which the wall clock is compared with the monotonic one, ms. */
const stepCheckMs = 250
/** Pause before a comparison that failed is repeated, ms. */
const retryPauseMs = 1_000

/** What is known of a worker's wall clock. */
export interface WorkerClock {
  /**
   * True while the clock is known to agree with the broker's, within 30 s. False from a step of the
   * clock until it was compared again. Looks for a step by itself, but for a ms after the last look.
   */
  readonly isTrusted: () => boolean
  /** The same as of the last call of `elapsedMs`: costs nothing after a look at a lease. */
  readonly wasTrusted: () => boolean
  /** How far it is ahead of the broker's clock, or behind it (negative), at least, ms. */
  readonly skewMs: () => number
}

/**
 * Returns the present time by the broker's clock, ms since the epoch: the time of this process, less
 * what this machine's clock, which may be wrong, is ahead.
 */
export const brokerNow = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { ts } = yield* streamInfo("read the broker's clock", names.history)
  const ahead = timers.wallMs() - Date.parse(ts ?? "")
  const now = yield* Clock.currentTimeMillis
  return Number.isNaN(ahead) ? now : now - ahead
})

/** What is logged when the clock comes into another state. */
const logState = (state: ClockState, skew: number): Effect.Effect<void> => {
  switch (state) {
    case "right":
      return Effect.logInfo("this machine's clock agrees with the broker's again")
    case "off":
      return Effect.logWarning(`${differs(skew)}: correct the wrong clock, for example with NTP`)
    case "wrong":
      return Effect.logError(
        `${differs(skew)}: nothing is sent until they agree, because receivers would refuse the timestamps; correct the wrong clock, for example with NTP`
      )
  }
}

/**
 * Compares this machine's wall clock with the broker's, at intervals and after each step, until the
 * scope closes. Returns once it was compared for the first time.
 */
export const watchClock = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const clock = yield* Clock.Clock
  const wallMs = () => clock.currentTimeMillisUnsafe()
  let skew = 0
  let state: ClockState = "right"
  /** Steps of the clock before it was last compared. */
  let comparedAfter = -1
  const hasStepped = () => clockSteps() !== comparedAfter

  const compare = Effect.gen(function* () {
    const before = clockSteps()
    const askedAt = wallMs()
    const { ts } = yield* streamInfo("compare the clocks", names.history)
    const answeredAt = wallMs()
    const brokerAt = Date.parse(ts ?? "")
    // It stepped meanwhile: the next comparison counts.
    if (clockSteps() !== before) return
    comparedAfter = before
    // The broker does not tell its time.
    if (Number.isNaN(brokerAt)) return
    skew = skewMs({ askedAt, brokerAt, answeredAt })
    const former = state
    state = clockState(skew)
    if (state !== former) yield* logState(state, skew)
  })
  const compareSurely = Effect.retry(compare, Schedule.spaced(retryPauseMs))

  const steps = yield* Queue.sliding<void>(1)
  const checkForStep = () => {
    if (hasStepped()) Queue.offerUnsafe(steps, undefined)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => timers.every(stepCheckMs, checkForStep)),
    (timer) => Effect.sync(() => timers.cancel(timer))
  )
  yield* Effect.orDie(compareSurely)
  yield* Effect.race(Queue.take(steps), Effect.sleep(compareEveryMs)).pipe(
    Effect.andThen(compareSurely),
    Effect.orDie,
    Effect.forever,
    Effect.forkScoped
  )
  const watched: WorkerClock = {
    isTrusted: () => state !== "wrong" && !hasStepped(),
    wasTrusted: () => state !== "wrong" && seenClockSteps() === comparedAfter,
    skewMs: () => skew
  }
  return watched
})
