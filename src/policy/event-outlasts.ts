import type { Delivery } from "../domain/delivery.ts"

/**
 * How much longer than a delivery its event must last, ms: the delivery's end may be found that long
 * after its deadline, and a dead letter needs the body.
 */
const marginMs = 10 * 60_000

type WaitingFor = Pick<Delivery, "deadline" | "eventAt">

/** Returns how long an event must be kept so that a delivery may wait without a body, ms. */
export const neededMs = ({ deadline, eventAt }: WaitingFor): number => deadline + marginMs - eventAt

/**
 * True where an event is certainly kept for as long as a delivery of it may wait, so that the
 * delivery may wait without a body.
 *
 * @param keptMs how long events are kept, ms; infinite for ever, undefined while it is unknown.
 */
export const eventOutlasts = (delivery: WaitingFor, keptMs: number | undefined): boolean =>
  keptMs !== undefined && keptMs > neededMs(delivery)
