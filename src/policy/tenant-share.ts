/** Share of a capacity that those with more than an equal part may use. */
const looseShare = 7 / 8

/**
 * Returns how much of a capacity one of several that share it may use now, what it uses included:
 * an equal part, or what the others leave of all but an eighth where that is more, and never more
 * than is free. So one alone uses nearly all, what nobody else wants is used, and whoever comes
 * finds the last eighth free however long the others' requests take. With one sharer it is all.
 *
 * @param own what it uses.
 * @param used what all use.
 * @param sharers number of those that use some or wait, itself included.
 */
export const allowanceOf = (own: number, used: number, sharers: number, size: number): number => {
  const others = used - own
  return Math.min(size - others, Math.max(Math.ceil(size / sharers), looseShare * size - others))
}
