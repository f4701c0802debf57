/**
 * Returns the edit distance: insertions, deletions, replacements and swaps of neighbours that turn one
 * text into the other.
 */
const distance = (from: string, to: string): number => {
  const [letters, others] = [[...from], [...to]]
  let before: ReadonlyArray<number> = []
  let row: ReadonlyArray<number> = Array.from({ length: others.length + 1 }, (_, at) => at)
  for (const [i, letter] of letters.entries()) {
    const next = [i + 1]
    for (const [j, other] of others.entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1)
      const isSwap = i > 0 && j > 0 && letter === others[j - 1] && letters[i - 1] === other
      const swapped = isSwap ? (before[j - 1] ?? 0) + 1 : replaced
      next.push(Math.min(replaced, swapped, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row[others.length] ?? 0
}

/** Maximum edit distance of a typing error, as a share of the longer name. */
const slip = 1 / 3

const mostEdits = (name: string, candidate: string): number =>
  Math.max(name.length, candidate.length) * slip

/**
 * Returns the most similar name, ignoring case; undefined if none is similar. A name that is far
 * longer or shorter than a candidate is not compared with it: whoever asks may send any.
 */
export const nearestName = (name: string, names: ReadonlyArray<string>): string | undefined =>
  names
    .filter((candidate) => Math.abs(candidate.length - name.length) <= mostEdits(name, candidate))
    .map((candidate) => ({
      candidate,
      edits: distance(name.toLowerCase(), candidate.toLowerCase())
    }))
    .filter(({ candidate, edits }) => edits <= mostEdits(name, candidate))
    .reduce<{ readonly candidate: string; readonly edits: number } | undefined>(
      (best, next) => (best === undefined || next.edits < best.edits ? next : best),
      undefined
    )?.candidate
