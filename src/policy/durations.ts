/** Steps in which a duration doubles: each is a fifth longer than the one before. */
const perDoubling = 4
/** The last step takes all that is longer: 2^31 ms, 24 days. */
const lastStep = 31 * perDoubling

/** The step of a logarithmic scale that a duration (ms) falls into; below 1 ms there is one. */
export const stepOf = (ms: number): number =>
  ms < 1 ? 0 : Math.min(lastStep, 1 + Math.floor(Math.log2(ms) * perDoubling))

/** Where a step begins, ms. */
const startOf = (step: number): number => (step === 0 ? 0 : 2 ** ((step - 1) / perDoubling))

/**
 * The duration (ms) that so large a share stays below, to about a tenth; undefined of none.
 *
 * @param counts how many fell into each step of the scale.
 * @param share from 0 to 1: 0.5 for the median.
 */
export const quantile = (counts: ReadonlyArray<number>, share: number): number | undefined => {
  let total = 0
  for (const count of counts) total += count
  if (total === 0) return undefined
  const rank = share * total
  let below = 0
  // No iterator: the owner of many endpoints does this for each.
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
