/** A summary of several measurements of one quantity. */
export interface Spread {
  readonly min: number
  readonly median: number
  readonly max: number
}

/** Returns a quantile (0 to 1): between two values, the mean of both. */
export const quantileOf = (numbers: ReadonlyArray<number>, quantile: number): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  const at = (index: number) => sorted[index] ?? Number.NaN
  const place = (sorted.length - 1) * quantile
  return (at(Math.floor(place)) + at(Math.ceil(place))) / 2
}

export const spreadOf = (numbers: ReadonlyArray<number>): Spread => ({
  min: quantileOf(numbers, 0),
  median: quantileOf(numbers, 0.5),
  max: quantileOf(numbers, 1)
})

/** Returns the slope of y over x by least squares. */
export const slopeOf = (points: ReadonlyArray<readonly [x: number, y: number]>): number => {
  const mean = (of: 0 | 1) => points.reduce((sum, point) => sum + point[of], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0)
  return over / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
}
