/** By how much the clock on the wall may be put forward without that being taken for a suspension, ms. */
const steppedMs = 1_000

/** Between two looks at the clock on the wall, ms: it is asked several times for each delivery. */
const lookEveryMs = 1

let suspendedMs = 0
let lookedAt = performance.now()
let difference = Date.now() - lookedAt

/**
 * A clock for how long ago something was, ms since some moment. The monotonic clock stands still while
 * a machine is suspended, and what the broker remembers does not wait for it: so what the clock on the
 * wall has gained on it counts as well. A wall clock that is put forward looks the same, and makes
 * things seem older than they are.
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
