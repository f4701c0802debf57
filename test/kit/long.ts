/**
 * True in `npm run test:long`. `npm run test:all` tells one of several stories that differ in a step or
 * in numbers only; the long run tells all of them, and those that take tens of seconds of CPU.
 */
export const isLong = process.env.PETREL_TEST_LONG !== undefined

/** Returns what other runs have of a series: its first few, or all in the long run. */
export const fewOf = <T>(all: ReadonlyArray<T>, few: number): ReadonlyArray<T> =>
  isLong ? all : all.slice(0, few)
