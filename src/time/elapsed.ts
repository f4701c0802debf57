import { timers } from "./timers.ts"

/** A change of the wall clock up to this size is neither a suspension nor a step, ms. */
const steppedMs = 1_000

/**
 * Pause between two reads of the wall clock, ms: the clock is asked several times for each
 * delivery.
 */
const lookEveryMs = 1

let clocks = timers
let suspendedMs = 0
let steps = 0
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
  const gained = now - difference
  // Other clocks than before: a test or a simulation begins or ends.
  if (clocks !== timers) suspendedMs = 0
  else if (gained > steppedMs) suspendedMs += gained
  if (Math.abs(gained) > steppedMs) steps++
  clocks = timers
  difference = now
  return monotonic + suspendedMs
}

/**
 * Returns how often the wall clock was seen to step, or the machine to have been suspended, until
 * `elapsedMs` was last called.
 */
export const seenClockSteps = (): number => steps

/**
 * Returns how often the wall clock has stepped, or the machine was suspended. What was found out
 * about the wall clock holds until the number changes.
 */
export const clockSteps = (): number => {
  elapsedMs()
  return steps
}
