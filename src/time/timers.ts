import type { Clock } from "effect"
import { Duration, Effect } from "effect"

/** A timer that has not fired. `unref` lets the process end before it does. */
export interface Timer {
  unref(): unknown
}

/**
 * Time and timers, all from one place, so that a test or a simulation decides them. Durations and
 * moments are in ms.
 */
export interface Timers {
  /** The monotonic clock. It stops while the machine is suspended. */
  readonly monotonicMs: () => number
  /** The wall clock, ms since the epoch. It may step in either direction. */
  readonly wallMs: () => number
  /** Calls `run` once, with `of` where it is given. */
  readonly after: {
    (ms: number, run: () => void): Timer
    <A>(ms: number, run: (of: A) => void, of: A): Timer
  }
  /** Calls `run` at an interval. */
  readonly every: (ms: number, run: () => void) => Timer
  /** Calls `run` once input and output that is due has been handled. */
  readonly immediate: (run: () => void) => void
  /** Stops a timer, or does nothing. */
  readonly cancel: (timer: Timer | undefined) => void
}

/** The machine's clocks and Node's timers. */
export const systemTimers: Timers = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: <A>(ms: number, run: (of: A) => void, of?: A) => setTimeout(run, ms, of as A),
  every: (ms, run) => setInterval(run, ms),
  immediate: (run) => {
    setImmediate(run)
  },
  cancel: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined)
}

/** The timers of this process. */
export let timers: Timers = systemTimers

/** Replaces the timers of this process. Returns what puts the former ones back. */
export const useTimers = (replacement: Timers): (() => void) => {
  const former = timers
  timers = replacement
  return () => {
    timers = former
  }
}

/** Longest delay of one timer, ms: Node fires a longer one at once. */
const maxTimerMs = 2 ** 31 - 1

const sleepMs = (ms: number): Effect.Effect<void> => {
  if (ms <= 0) return Effect.yieldNow
  if (!Number.isFinite(ms)) return Effect.never
  const rest = ms > maxTimerMs ? sleepMs(ms - maxTimerMs) : Effect.void
  return Effect.callback((resume) => {
    const timer = timers.after(Math.min(ms, maxTimerMs), () => resume(rest))
    return Effect.sync(() => timers.cancel(timer))
  })
}

const nanosOf = (ms: number): bigint => BigInt(Math.round(ms * 1_000_000))

/** Effect's clock, made from the timers of this process. */
export const clock: Clock.Clock = {
  currentTimeMillisUnsafe: () => timers.wallMs(),
  currentTimeMillis: Effect.sync(() => timers.wallMs()),
  currentTimeNanosUnsafe: () => nanosOf(timers.wallMs()),
  currentTimeNanos: Effect.sync(() => nanosOf(timers.wallMs())),
  monotonicTimeNanosUnsafe: () => nanosOf(timers.monotonicMs()),
  monotonicTimeNanos: Effect.sync(() => nanosOf(timers.monotonicMs())),
  sleep: (duration) => sleepMs(Duration.toMillis(duration))
}
