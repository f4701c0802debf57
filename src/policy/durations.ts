/** Steps per doubling of the duration: each step is a fifth longer than the previous one. */
const perDoubling = 4
/** The last step holds all longer durations: 2^31 ms, 24 days. */
const lastStep = 31 * perDoubling

/**
 * Returns the step of a logarithmic scale for a duration (ms). Durations below 1 ms share one step.
 */
export const stepOf = (ms: number): number =>
  ms < 1 ? 0 : Math.min(lastStep, 1 + Math.floor(Math.log2(ms) * perDoubling))

/** Returns the start of a step, ms. */
const startOf = (step: number): number => (step === 0 ? 0 : 2 ** ((step - 1) / perDoubling))

/**
 * Returns a quantile of durations (ms), accurate to about a tenth; undefined without durations.
 *
 * @param counts number of durations in each step.
 * @param share from 0 to 1: 0.5 for the median.
 */
export const quantile = (counts: ReadonlyArray<number>, share: number): number | undefined => {
  let total = 0
  for (const count of counts) total += count
  if (total === 0) return undefined
  const rank = share * total
  let below = 0
  // No iterator: an owner of many endpoints runs this for each of them.
  for (let step = 0; step < counts.length; step++) {
    const count = counts[step] ?? 0
    if (count > 0 && below + count >= rank) {
      const start = startOf(step)
      return start + ((startOf(step + 1) - start) * (rank - below)) / count
    }
    below += count
  }
  return startOf(counts.length)
}
