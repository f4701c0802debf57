/** Formats a count: `1,204`. */
export const countText = (count: number): string => count.toLocaleString("en-US")

/** Formats a count of things: `1 event`, `1,204 events`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`

/** Returns a share between 0 and 1, to four decimals; null if the whole is 0. */
export const shareOf = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((part / whole) * 10_000) / 10_000

/** Formats a share in percent. Only the whole is 100%, and only nothing is 0%. */
export const percentText = (part: number, whole: number): string => {
  if (part === 0 || part === whole) return part === 0 ? "0%" : "100%"
  const tenths = Math.floor((part / whole) * 1_000) / 10
  return tenths === 0 ? "<0.1%" : `${tenths}%`
}

/** Formats numbers as ranges: `0-3, 5`. */
export const rangesText = (numbers: ReadonlyArray<number>): string => {
  const ranges: Array<[from: number, to: number]> = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last !== undefined && last[1] === number - 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ")
}
