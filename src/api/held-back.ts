/**
 * How long who is refused is held back at least, ms. It can come again only then: who is refused at once
 * comes again at once, and that takes nearly as much of the thread as an answer.
 */
const leastMs = 1_000
/** How many of one owner are let go in a second, at most. */
const perSecond = 32
/** How long anything is held back at most, ms. */
const mostMs = 10_000

/**
 * Returns how long the next one of an owner is held back, ms.
 *
 * @param others of the same owner that are held back already.
 */
export const heldBackMs = (others: number): number =>
  Math.min(mostMs, Math.max(leastMs, (others * 1_000) / perSecond))
