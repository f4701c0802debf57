import { Context } from "effect"

/** The moments between two steps of which the second must not be lost or done twice. */
export type FailpointName =
  | "plan-stored"
  | "delivery-stored"
  | "event-routed"
  | "answered"
  | "decided"
  | "dead-stored"
  | "outcome-stored"
  | "end-stored"
  | "moved"
  | "postponed"
  | "released"
  | "partition-closed"
  | "stream-removed"
  | "round-claimed"
  | "round-stored"
  | "alert-decided"
  | "alert-stored"

/**
 * Called at each such moment. Does nothing; a test kills the process there.
 * A plain function: on the path of every delivery.
 */
export const Failpoint = Context.Reference<(step: FailpointName) => void>(
  "petrel/delivery/Checkpoint",
  {
    defaultValue: () => () => undefined
  }
)
