/* Where the fan-out brings a delivery: directly to its endpoint, into a backlog, or into a queue. */
import type { Progress } from "../domain/delivery.ts"
import type { DirectEnd } from "./partition-owner.ts"

/**
 * True where a delivery may be stored in its endpoint's backlog. One with a failed attempt waits in
 * the queue: only there it waits for its own time.
 */
export const mayEnterBacklog = ({ attempts }: Progress): boolean => attempts === 0

/** What the fan-out does after a direct delivery. */
export type AfterDirectEnd =
  /** Nothing: the delivery has ended. */
  | "leave"
  /** Store it, with the progress of its attempt. */
  | "store"
  /** Leave it to recovery, which locates it first. */
  | "locate"

/**
 * Decides how a delivery goes on after it was tried directly.
 *
 * @param isPlanUnsure whether another plan of the event may count.
 * @param isLate whether another router may have stored the delivery by now, and the broker may have
 *   forgotten its message id.
 */
export const afterDirectEnd = (
  end: DirectEnd["_tag"],
  isPlanUnsure: boolean,
  isLate: boolean
): AfterDirectEnd => {
  if (isPlanUnsure || end === "Unknown") return "locate"
  if (end === "Delivered") return "leave"
  return isLate ? "locate" : "store"
}
