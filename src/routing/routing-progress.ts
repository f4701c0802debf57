/* How far the routing of an event has come, and what recovery makes of it. Pure. */
import type { StoreFailure } from "../broker/publish-once.ts"
import { mayBeStored } from "../broker/publish-once.ts"
import type { Progress } from "../domain/delivery.ts"
import { firstRound, untried } from "../domain/delivery.ts"
import type { Event } from "../domain/event.ts"
import type { Plan, Planned } from "../domain/fact.ts"
import { progressFrom } from "../history/delivery-facts.ts"
import type { Sighting } from "../history/locate.ts"
import type { StoredPart } from "./plan.ts"
import type { PlanCommit } from "./plan-commit.ts"

/** An event whose routing has begun: the stored parts of its plan, and its located deliveries. */
export interface PartialRouting {
  readonly tenant: string
  /** When the event was stored, ms since the epoch. */
  readonly at: number
  readonly parts: Array<StoredPart>
  readonly sent: Set<string>
  /** Endpoints without a stored delivery, and the progress of their direct attempt. */
  readonly failed: Map<string, Progress>
}

/** Returns the state of an event whose plan is not stored. */
export const nothingRouted = ({ at, tenant }: Pick<Event, "at" | "tenant">): PartialRouting => ({
  tenant,
  at,
  parts: [],
  sent: new Set(),
  failed: new Map()
})

/** Where the delivery to one endpoint is. */
export interface Located {
  /** True where it is in its queue, has moved on from there, or has ended. */
  readonly isSent: boolean
  /** Its progress, where a direct attempt failed. */
  readonly failed: Progress | undefined
}

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
 * Notes what a sighting tells of its event. A message, an attempt from a queue and an end show that
 * the delivery was sent; a failed direct attempt shows only how far it came.
 *
 * @param events the stream of events.
 */
export const noteSighting = (begun: PartialRouting, sighting: Sighting, events: string): void => {
  if (sighting.round !== firstRound) return
  const failed = sighting.where === "history" ? progressFrom(sighting.fact, events) : undefined
  if (failed === undefined) begun.sent.add(sighting.endpoint)
  else begun.failed.set(sighting.endpoint, failed)
}

/** Returns where the sightings of an event have located its delivery to one endpoint. */
export const locatedIn = (begun: PartialRouting | undefined, endpoint: string): Located => ({
  isSent: begun?.sent.has(endpoint) === true,
  failed: begun?.failed.get(endpoint)
})

/** A part of an event's plan, as recovery comes to it. */
type PartState =
  /** The history holds it: it is followed, whatever was configured since. */
  | { readonly _tag: "Stored"; readonly part: StoredPart }
  /** Its append was tried: the same plan and time, so that it is recognised where it was stored. */
  | { readonly _tag: "Asked"; readonly plan: Plan; readonly at: number }
  | { readonly _tag: "Unplanned" }

/** Returns the state of a part of an event's plan. */
export const partStateOf = ({ asked, known }: RoutingProgress, part: number): PartState => {
  const stored = known?.parts[part]
  if (stored !== undefined) return { _tag: "Stored", part: stored }
  // Only a plan of one part is appended before recovery begins.
  return part === 0 && asked !== undefined
    ? { _tag: "Asked", plan: asked.plan, at: asked.at }
    : { _tag: "Unplanned" }
}

/** What recovery does about the delivery to one endpoint of a stored part. */
export type RecoveryStep =
  /** It was sent. */
  | { readonly _tag: "Leave" }
  /**
   * It is stored, with the progress of its direct attempt where one was made. `mayBeSent` where
   * somebody may have stored or attempted it, so that it must be located first.
   */
  | { readonly _tag: "Store"; readonly progress: Progress; readonly mayBeSent: boolean }

/**
 * Decides what recovery does about a delivery.
 *
 * @param isNew whether this recovery has stored the part: nobody else follows it then.
 */
export const recoveryStep = (
  { known, tried }: RoutingProgress,
  { id }: Pick<Planned, "id">,
  isNew: boolean
): RecoveryStep => {
  if (known?.sent.has(id) === true) return { _tag: "Leave" }
  const progress = known?.failed.get(id) ?? untried
  return { _tag: "Store", progress, mayBeSent: tried === undefined ? !isNew : tried.has(id) }
}

/** What the fan-out of an event has done when recovery must continue it. */
interface FanOutState {
  readonly planCommit: Pick<PlanCommit, "at" | "event" | "plan" | "stored">
  /** When its routing began, ms of the monotonic clock. */
  readonly began: number
  /** Endpoints of the plan that the fan-out has come to: so many from the first. */
  readonly begun: number
  /** Endpoints that are not known to have a delivery. */
  readonly failures: ReadonlyMap<string, StoreFailure> | undefined
  /** Endpoints whose direct attempt failed. */
  readonly failed: Map<string, Progress> | undefined
}

/** Returns the progress from which recovery continues a fan-out. */
export const progressOf = (state: FanOutState): RoutingProgress => {
  const { began, failed = new Map(), failures = new Map(), planCommit } = state
  const { event, plan, stored } = planCommit
  if (stored === undefined) return { known: undefined, began, asked: planCommit }
  const sent = new Set<string>()
  const tried = new Set<string>()
  for (const { id } of plan.endpoints.slice(0, state.begun)) {
    const why = failures.get(id)
    if (why === undefined) sent.add(id)
    else if (why === "unknown" || mayBeStored(why)) tried.add(id)
  }
  return { known: { ...nothingRouted(event), parts: [stored], sent, failed }, tried, began }
}
