/*
 * Bounds of the difference between clocks, for comparing timestamps of one with those of another.
 */

/**
 * Clocks of the cluster nodes that store an event and its plan, ms. Both run NTP. This bound is
 * small because it is read often.
 */
export const maxNodeSkewMs = 60_000

/** How far the clock of a broker that is no cluster may be set back between an event and its plan, ms. */
export const maxClockStepMs = 1_000

/**
 * Clocks of brokers, workers and machines that run commands, ms. Used where starting a lookup too
 * early costs little.
 */
export const maxClockSkewMs = 5 * 60_000

/**
 * The clock of a provider, which is nobody's here, ms. An event carries its time, and is looked up
 * among what came in from so long before that.
 */
export const maxProviderSkewMs = 60 * 60_000

/** Clocks of the same machines, where a search for rounds of weeks ago must miss nothing, ms. */
export const maxRoundSkewMs = 24 * 60 * 60_000
