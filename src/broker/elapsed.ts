/** A wall clock step up to this size does not count as a suspension, ms. */
const steppedMs = 1_000

/**
 * Pause between two reads of the wall clock, ms: the clock is asked several times for each
 * delivery.
 */
const lookEveryMs = 1

let suspendedMs = 0
let lookedAt = performance.now()
let difference = Date.now() - lookedAt

/**
 * A clock for elapsed time, in ms since an arbitrary moment.
 *
 * The monotonic clock stops while a machine is suspended, but the broker's retention does not. So
 * what the wall clock has gained on the monotonic clock counts as well. A wall clock that is set
 * forward looks the same, and makes things seem older than they are.
 */
export const elapsedMs = (): number => {
  const monotonic = performance.now()
  if (monotonic - lookedAt < lookEveryMs) return monotonic + suspendedMs
  lookedAt = monotonic
  const now = Date.now() - monotonic
  if (now - difference > steppedMs) suspendedMs += now - difference
  difference = now
  return monotonic + suspendedMs
}
