/**
 * True where a delivery may no longer be attempted: its attempts begin before its deadline. Times
 * in ms since the epoch.
 */
export const isPastDeadline = ({ deadline }: { readonly deadline: number }, at: number): boolean =>
  at >= deadline
