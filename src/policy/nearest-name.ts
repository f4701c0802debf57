/**
 * Returns the edit distance: insertions, deletions and replacements that turn one text into the
 * other.
 */
const distance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1]
    for (let j = 0; j < to.length; j++) {
      const replaced = (row[j] ?? 0) + (letter === to[j] ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
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
