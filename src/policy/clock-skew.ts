/** Difference between a worker's clock and the broker's from which it is reported, ms. */
const reportedSkewMs = 2_000
/**
 * Difference beyond which a worker sends nothing, ms. Receivers refuse timestamps that are minutes
 * off, for good (Standard Webhooks' libraries: 5 min), and deadlines would be missed or pass early.
 */
export const maxSkewMs = 30_000

/**
 * True where a moment that a worker recorded as past or present lies in the future, further than
 * the clocks of two workers that send may differ. The clock that it was read from was wrong, or
 * this one was set back.
 *
 * @param at the moment, `now` the present one, ms since the epoch.
 */
export const isFromWrongClock = (at: number, now: number): boolean => at - now > 2 * maxSkewMs

/** One comparison of two clocks. All ms since the epoch. */
export interface ClockComparison {
  /** The worker's clock when it asked. */
  readonly askedAt: number
  /** The broker's clock when it answered. */
  readonly brokerAt: number
  /** The worker's clock when the answer came. */
  readonly answeredAt: number
}

/**
 * Returns how far the worker's clock is ahead of the broker's, or behind it (negative), at least,
 * ms. The time that the question took is no difference.
 */
export const skewMs = ({ answeredAt, askedAt, brokerAt }: ClockComparison): number =>
  askedAt > brokerAt ? askedAt - brokerAt : Math.min(0, answeredAt - brokerAt)

/** What a difference between the clocks means. */
export type ClockState = "right" | "off" | "wrong"

/** Judges a difference, ms: `wrong` where nothing may be sent. */
export const clockState = (skew: number): ClockState => {
  const size = Math.abs(skew)
  return size > maxSkewMs ? "wrong" : size >= reportedSkewMs ? "off" : "right"
}

const seconds = (ms: number): string => (Math.abs(ms) / 1_000).toFixed(1)

/** Says how far a clock is off, ms: `600.0 s ahead`. */
export const skewText = (skew: number): string =>
  `${seconds(skew)} s ${skew > 0 ? "ahead" : "behind"}`

/** Says by how much this machine's clock differs from the broker's, ms. */
export const differs = (skew: number): string =>
  `this machine's clock is ${skewText(skew)}${skew > 0 ? " of" : ""} the broker's`
