const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Ticks of a scale of lengths of time, ms. */
const ticks: ReadonlyArray<readonly [ms: number, text: string]> = [
  [second, "1 s"],
  [10 * second, "10 s"],
  [minute, "1 min"],
  [10 * minute, "10 min"],
  [hour, "1 h"],
  [6 * hour, "6 h"],
  [day, "1 d"],
  [7 * day, "7 d"]
]

/** A logarithmic scale: waits of a second and of a day are seen side by side. */
export interface Scale {
  /** Position of a length of time, from 0 to 1. */
  readonly at: (ms: number) => number
  readonly ticks: ReadonlyArray<{ readonly position: number; readonly text: string }>
}

/** Returns a scale on which all of these lengths of time (ms) have a place. */
export const scaleOf = (lengths: ReadonlyArray<number>): Scale => {
  const shortest = Math.max(1, Math.min(...lengths, hour))
  const longest = Math.max(...lengths, 2 * second)
  const least = Math.min(second, shortest) / 2
  const span = Math.log(longest / least)
  const at = (ms: number) => Math.min(1, Math.max(0, Math.log(Math.max(ms, least) / least) / span))
  return {
    at,
    ticks: ticks
      .filter(([ms]) => ms >= least && ms <= longest)
      .map(([ms, text]) => ({ position: at(ms), text }))
  }
}
