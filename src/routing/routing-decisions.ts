/* What becomes of the deliveries of an event. Pure: fan-out.ts and routing-recovery.ts carry it out. */
import type { Progress } from "../domain/delivery.ts"
import { untried } from "../domain/delivery.ts"
import type { Plan, Planned } from "../domain/fact.ts"
import type { PartialRouting } from "./partial-routing.ts"
import type { DirectEnd } from "./partition-owner.ts"
import type { PlanCommit } from "./plan-commit.ts"

/** The state of an event's routing from which recovery continues. */
export interface RoutingProgress {
  /**
   * The stored parts of its plan and its located deliveries. Undefined where routing has not begun.
   */
  readonly known: PartialRouting | undefined
  /**
   * Endpoints whose delivery may have been stored or attempted. Undefined where that holds for all
   * endpoints of a plan that was stored earlier.
   */
  readonly tried?: ReadonlySet<string>
  /** When its routing began, ms of the monotonic clock. (Default: now) */
  readonly began?: number
  /** The plan whose append was tried, where the history may hold it. */
  readonly asked?: Pick<PlanCommit, "plan" | "at">
}

/**
 * Decides what becomes of a delivery after its direct attempt: nothing more, a place in the queue
 * with its progress, routing as if it had not been attempted, or a search for it.
 *
 * @param isTooLate true where the broker may have forgotten the message id of what was stored.
 * @param isPlanUnsure true where another router's plan may count.
 */
export const afterDirectEnd = (
  end: DirectEnd,
  isTooLate: boolean,
  isPlanUnsure: boolean
): "done" | "queue" | "route" | "locate" => {
  if (end._tag === "Unknown" || isPlanUnsure) return "locate"
  if (end._tag === "Failed") return isTooLate ? "locate" : "queue"
  return end._tag === "Untried" ? "route" : "done"
}

/** A delivery of a plan that is not known to be stored. */
export interface MissingDelivery {
  readonly planned: Planned
  /** What is known of its direct attempt. */
  readonly progress: Progress
  /** True where it may be stored, or may have been attempted: it is looked for first. */
  readonly mayBeStored: boolean
}

/**
 * Returns the deliveries of a part of the plan that are to be stored.
 *
 * @param isNew true where the part was stored just now: then nobody else can have followed it.
 */
export const missingOf = (
  { endpoints }: Plan,
  isNew: boolean,
  { known, tried }: Pick<RoutingProgress, "known" | "tried">
): ReadonlyArray<MissingDelivery> =>
  endpoints.flatMap((planned) => {
    const { id } = planned
    if (known?.sent.has(id) === true) return []
    const progress = known?.failed.get(id) ?? untried
    return [{ planned, progress, mayBeStored: tried === undefined ? !isNew : tried.has(id) }]
  })
