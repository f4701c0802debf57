const bars = "▁▂▃▄▅▆▇█"
/** Most bars of a line: more are put together. */
const maxBars = 72

/** Draws counts as a line of bars, the highest for the most; a space where there are none. */
export const sparkline = (counts: ReadonlyArray<number>): string => {
  const each = Math.max(1, Math.ceil(counts.length / maxBars))
  const sums = Array.from({ length: Math.ceil(counts.length / each) }, (_, index) =>
    counts.slice(index * each, (index + 1) * each).reduce((sum, count) => sum + count, 0)
  )
  const most = Math.max(1, ...sums)
  return sums
    .map((sum) => (sum === 0 ? " " : bars[Math.ceil((sum / most) * bars.length) - 1]))
    .join("")
    .trimEnd()
}
