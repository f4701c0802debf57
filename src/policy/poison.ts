/**
 * A message with this many more deliveries by the broker than recorded attempts may be what crashes
 * its workers.
 */
const unrecordedDeliveries = 3
/** Pause before such a message is attempted again, ms: doubles from the first to the second. */
const pausesMs = [1_000, 300_000] as const
/** Doublings after which the pause is at its maximum in any case. */
const maxDoublings = 20

/**
 * True where a message was delivered so often without a recorded attempt that its next attempt must
 * be marked first.
 *
 * @param deliveryCount how often the broker has delivered it, this time included.
 * @param recorded attempts of this message that are recorded.
 */
export const isSuspect = (deliveryCount: number, recorded: number): boolean =>
  deliveryCount - recorded >= unrecordedDeliveries

/**
 * Returns the pause after a defect, ms.
 *
 * @param defects number of earlier ones met with the same message.
 */
export const pauseAfterDefectMs = (defects: number): number =>
  Math.min(pausesMs[0] * 2 ** Math.min(defects, maxDoublings), pausesMs[1])

/** Returns the pause before a message with this many unsurvived attempts is tried again, ms. */
export const pauseBeforeTrialMs = (trials: number): number => pauseAfterDefectMs(trials - 1)
