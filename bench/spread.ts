/** A summary of several measurements of one quantity. */
export interface Spread {
  readonly min: number
  readonly median: number
  readonly max: number
}

/** The median of an even number of values is the mean of the two in the middle. */
export const spreadOf = (numbers: ReadonlyArray<number>): Spread => {
  const sorted = [...numbers].sort((a, b) => a - b)
  const at = (index: number) => sorted[index] ?? Number.NaN
  const middle = (sorted.length - 1) / 2
  return {
    min: at(0),
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    max: at(sorted.length - 1)
  }
}

/** Returns the slope of y over x by least squares. */
export const slopeOf = (points: ReadonlyArray<readonly [x: number, y: number]>): number => {
  const mean = (of: 0 | 1) => points.reduce((sum, point) => sum + point[of], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0)
  return over / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
}
