import { Clock, Effect } from "effect"

/** A wall clock that a test sets forward or back. Sleeps are not affected. */
export const shiftedClock = Effect.map(Clock.Clock, (real) => {
  let shiftMs = 0
  const wallMs = () => real.currentTimeMillisUnsafe() + shiftMs
  const nanosOf = (ms: number) => BigInt(Math.round(ms)) * 1_000_000n
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: wallMs,
    currentTimeMillis: Effect.sync(wallMs),
    currentTimeNanosUnsafe: () => nanosOf(wallMs()),
    currentTimeNanos: Effect.sync(() => nanosOf(wallMs())),
    monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: real.monotonicTimeNanos,
    sleep: (duration) => real.sleep(duration)
  }
  return {
    clock,
    /** Sets the clock to this difference from the right time, ms. */
    shift: (ms: number) => {
      shiftMs = ms
    }
  }
})
