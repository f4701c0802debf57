/* How far clocks may differ, where times of one are compared with those of another. */

/** Clocks of a cluster's nodes that store an event and its plan, ms: both run NTP, and are read often. */
export const maxNodeSkewMs = 60_000

/** Clocks of brokers, workers and of those who run commands, ms: where a lookup that begins too early costs little. */
export const maxClockSkewMs = 5 * 60_000

/** The same where rounds of weeks ago are looked for and nothing may be missed, ms. */
export const maxRoundSkewMs = 24 * 60 * 60_000
