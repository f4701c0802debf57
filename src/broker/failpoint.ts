import { Context } from "effect"

/**
 * The moments between two steps, where a crash must not lose the second step or cause it to run
 * twice.
 */
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
  | "reconciliation-reported"
  | "reconciliation-recorded"

/**
 * Called at each failpoint. Does nothing by default; a test kills the process there. A plain
 * function, because it is on the path of every delivery.
 */
export const Failpoint = Context.Reference<(step: FailpointName) => void>(
  "petrel/broker/Failpoint",
  {
    defaultValue: () => () => undefined
  }
)
