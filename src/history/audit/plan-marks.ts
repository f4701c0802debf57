/*
 * What is kept of an event's plan, in 16 bits: three marks, and below them how many parts were read.
 */

/** The event was read. */
export const isThere = 1 << 15
/** The part that ends the plan was read. */
export const isComplete = 1 << 14
const lacksPart = 1 << 13
const parts = lacksPart - 1

/** True where a plan was begun, however far it goes. */
export const hasBegun = (plan: number): boolean => (plan & ~isThere) !== 0

/** True where a plan is there to its end; 0 stands for an event of which nothing is known. */
export const isPlanned = (plan: number): boolean =>
  plan === 0 || (plan & (isComplete | lacksPart)) === isComplete

/** True where a part (from 0) of a plan was read before. */
export const hasPart = (plan: number, part: number): boolean => part < (plan & parts)

/** A plan after a further part of it. */
export const afterPart = (plan: number, part: number, last: boolean): number => {
  const lacks = part > (plan & parts) ? lacksPart : 0
  return (plan & ~parts) | lacks | (last ? isComplete : 0) | Math.min(part + 1, parts)
}
