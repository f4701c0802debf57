import { performance } from "node:perf_hooks"
import type { Timer } from "./timers.ts"
import { timers } from "./timers.ts"

/** Interval at which the delay of the event loop is measured, ms. */
const probeMs = 100

/** Returns how long the event loop of this thread has worked, and not waited, ms. */
export const loopActiveMs = (): number => performance.eventLoopUtilization().active

/**
 * Measures the delay of the event loop, until the timer that it returns is cancelled.
 *
 * @param observe called with how much later than due a timer fired, ms.
 */
export const watchLoopDelay = (observe: (ms: number) => void): Timer => {
  let due = timers.monotonicMs() + probeMs
  const timer = timers.every(probeMs, () => {
    const now = timers.monotonicMs()
    observe(Math.max(0, now - due))
    due = now + probeMs
  })
  timer.unref()
  return timer
}
