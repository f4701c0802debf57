/*
 * What an installation's streams and buckets may contain, as a number that only grows. A version
 * reads the level before its own, too, so that its workers can run together with those of the version before
 * while an installation is upgraded. It stores what a new level adds once the level was raised
 * (`petrel upgrade`), when no process of the version before is left.
 *
 * Data that no level leads to has another format (`storedFormat`).
 */

interface FeatureLevel {
  /** The first version that knows it. */
  readonly since: string
  /** What may be stored from this level on, as the end of a sentence. */
  readonly adds: string
}

/** All levels; the first one is level 1. Add the next one at the end, never change one. */
export const featureLevels: readonly [FeatureLevel, ...ReadonlyArray<FeatureLevel>] = [
  { since: "0.1.0", adds: "all that 0.1.0 stores" }
]

/** The levels that a version can work at. */
export interface LevelRange {
  readonly oldest: number
  readonly newest: number
}

const newest = featureLevels.length

/** The levels that this version can work at: its own, and the one before. */
export const ownLevels: LevelRange = { oldest: Math.max(1, newest - 1), newest }

const levelsText = ({ newest, oldest }: LevelRange): string =>
  oldest === newest ? `level ${newest} only` : `levels ${oldest} to ${newest}`

/**
 * Returns why a version may not work at a level, as a sentence that says what to do; undefined if it
 * may.
 */
export const levelProblem = (level: number, range: LevelRange): string | undefined => {
  const known = `this version of Petrel knows ${levelsText(range)}`
  if (level > range.newest)
    return `this installation is at feature level ${level}, and ${known}: run the version that raised it, or a newer one`
  if (level < range.oldest)
    return `this installation is at feature level ${level}, and ${known}: run a version that knows both ${level} and ${range.oldest}, raise the level with \`petrel upgrade\`, then run this one`
  return undefined
}
