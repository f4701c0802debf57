/** A count for people: `1,204`. */
export const countText = (count: number): string => count.toLocaleString("en-US")

/** A count of things: `1 event`, `1,204 events`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`

/** A part of a whole as a share of 1, to the fourth decimal; null of nothing. */
export const shareOf = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((part / whole) * 10_000) / 10_000

/** A part of a whole in percent. Only all of it is 100%, only none of it is 0%. */
export const percentText = (part: number, whole: number): string => {
  if (part === 0 || part === whole) return part === 0 ? "0%" : "100%"
  const tenths = Math.floor((part / whole) * 1_000) / 10
  return tenths === 0 ? "<0.1%" : `${tenths}%`
}
