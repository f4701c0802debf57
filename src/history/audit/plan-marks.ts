/*
 * The state of an event's plan in 16 bits: three marks, and the number of parts that were read.
 */

/** The event was read. */
export const isThere = 1 << 15
/** The part that ends the plan was read. */
export const isComplete = 1 << 14
const lacksPart = 1 << 13
const parts = lacksPart - 1

/** True if a part of the plan was read. */
export const hasBegun = (plan: number): boolean => (plan & ~isThere) !== 0

/** True if the plan is complete. Also for 0: an event that is not in the range. */
export const isPlanned = (plan: number): boolean =>
  plan === 0 || (plan & (isComplete | lacksPart)) === isComplete

/** True if a part (from 0) was read before. */
export const hasPart = (plan: number, part: number): boolean => part < (plan & parts)

/** The plan after a further part. */
export const afterPart = (plan: number, part: number, last: boolean): number => {
  const lacks = part > (plan & parts) ? lacksPart : 0
  return (plan & ~parts) | lacks | (last ? isComplete : 0) | Math.min(part + 1, parts)
}
