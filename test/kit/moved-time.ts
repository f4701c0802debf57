import type { Timer, Timers } from "../../src/time/timers.ts"
import { useTimers } from "../../src/time/timers.ts"

const hour = 3_600_000
const suspension = 600_000

/** What happens to the clocks of a machine, in the words of a test. */
export const clockEvents = [
  ["its clock is set an hour forward", (time: MovedTime) => time.step(hour)],
  ["its clock is set an hour back", (time: MovedTime) => time.step(-hour)],
  ["it was suspended for 10 minutes", (time: MovedTime) => time.suspend(suspension)]
] as const

interface Due extends Timer {
  at: number
  readonly run: () => void
  readonly every: number | undefined
}

/** A machine's clocks and timers that stand still unless a test lets them run. */
export const virtualTimers = (wall = 1_790_000_000_000, started = 1_000_000) => {
  let now = started
  const due = new Set<Due>()
  const add = (ms: number, run: () => void, every?: number): Due => {
    const timer: Due = { at: now + ms, run, every, unref: () => timer }
    due.add(timer)
    return timer
  }
  const timers: Timers = {
    monotonicMs: () => now,
    wallMs: () => wall + now - started,
    after: <A>(ms: number, run: (of: A) => void, of?: A) => add(ms, () => run(of as A)),
    every: (ms, run) => add(ms, run, ms),
    immediate: (run) => {
      add(0, run)
    },
    cancel: (timer) => {
      due.delete(timer as Due)
    }
  }
  /** Lets time pass, ms. Timers fire in order. */
  const runs = (ms: number): void => {
    const end = now + ms
    while (true) {
      const [next] = [...due].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      now = Math.max(now, next.at)
      if (next.every === undefined) due.delete(next)
      else next.at += next.every
      next.run()
    }
    now = end
  }
  return { timers, runs }
}

/** A machine whose clocks a test moves. */
export interface MovedTime {
  readonly timers: Timers
  /** Sets the wall clock forward, or back, ms. */
  readonly step: (ms: number) => void
  /** Suspends the machine, ms: its monotonic clock and its timers stand still. */
  readonly suspend: (ms: number) => void
  /** The right time, which is the broker's, ms since the epoch. */
  readonly brokerMs: () => number
  /** Sets the wall clock right again. */
  readonly setRight: () => void
}

/**
 * Makes clocks that a test moves from others, real or virtual. A machine cannot tell a suspension
 * from a step forward: only the broker's clock differs.
 */
export const movedTime = (base: Timers): MovedTime => {
  let shift = 0
  let slept = 0
  return {
    timers: { ...base, wallMs: () => base.wallMs() + shift + slept },
    step: (ms) => {
      shift += ms
    },
    suspend: (ms) => {
      slept += ms
    },
    brokerMs: () => base.wallMs() + slept,
    setRight: () => {
      shift = 0
    }
  }
}

/**
 * Runs a test with clocks and timers that stand still unless it moves them, and puts the process's
 * own ones back.
 */
export const withVirtualTime = (test: (time: MovedTime & { runs(ms: number): void }) => void) => {
  const { runs, timers } = virtualTimers()
  const moved = movedTime(timers)
  const putBack = useTimers(moved.timers)
  try {
    test({ ...moved, runs })
  } finally {
    putBack()
  }
}
