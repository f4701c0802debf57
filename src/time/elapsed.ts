import { timers } from "./timers.ts"

/** A wall clock step up to this size does not count as a suspension, ms. */
const steppedMs = 1_000

/**
 * Pause between two reads of the wall clock, ms: the clock is asked several times for each
 * delivery.
 */
const lookEveryMs = 1

let clocks = timers
let suspendedMs = 0
let lookedAt = timers.monotonicMs()
let difference = timers.wallMs() - lookedAt

/**
 * A clock for elapsed time, in ms since an arbitrary moment.
 *
 * The monotonic clock stops while a machine is suspended, but the broker's retention does not. So
 * what the wall clock has gained on the monotonic clock counts as well. A wall clock that is set
 * forward looks the same, and makes things seem older than they are.
 */
export const elapsedMs = (): number => {
  const monotonic = timers.monotonicMs()
  if (clocks === timers && monotonic - lookedAt < lookEveryMs) return monotonic + suspendedMs
  lookedAt = monotonic
  const now = timers.wallMs() - monotonic
  // Other clocks than before: a test or a simulation begins or ends.
  if (clocks !== timers) suspendedMs = 0
  else if (now - difference > steppedMs) suspendedMs += now - difference
  clocks = timers
  difference = now
  return monotonic + suspendedMs
}
