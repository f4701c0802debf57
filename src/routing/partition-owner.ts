/* The interface that routing requires of a partition's owner to deliver an event directly. */
import type { Effect } from "effect"
import type { StoreFailure } from "../broker/publish-once.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import type { Plan } from "../domain/fact.ts"

/** How a direct delivery ended. */
export type DirectEnd =
  /** The history holds the `delivered` fact. */
  | { readonly _tag: "Delivered" }
  /** No request was sent. */
  | { readonly _tag: "Untried" }
  /**
   * The history holds the fact of a failed attempt. The delivery goes to the queue: without its body
   * if `leavesBody`.
   */
  | { readonly _tag: "Failed"; readonly progress: Progress; readonly leavesBody: boolean }
  /** The attempt was cancelled: the history may hold its outcome or not. */
  | { readonly _tag: "Unknown" }

/** The plan of an event that goes to a single endpoint, where the history held no plan at first. */
export interface UncommittedPlan {
  /** Message id under which the history stores the plan once. */
  readonly id: string
  /** Time left in which the history still recognises the id as a duplicate, ms. */
  readonly safeRepublishMs: number
  /**
   * Returns the plan for the caller to store in the outcome's fact. Undefined where the plan is
   * already being stored by other means.
   */
  readonly piggyback: () => Plan | undefined
  /** True where the history holds this plan as a fact of its own. */
  readonly isCommitted: boolean
  /** True where the history may hold another plan for the event, which then counts. */
  readonly isUnsure: boolean
  /** Makes sure that the history holds a plan of the event, and returns its sequence. */
  readonly committed: Effect.Effect<number>
  /** Called when the history turns out to hold a plan already, at `seq`. */
  readonly adoptExisting: (seq: number) => void
  /** Called when that plan is the one stored with the outcome. */
  readonly confirmOwn: () => void
}

/** A delivery that is in no queue: its event stays unacknowledged until the attempt ends. */
export interface DirectDelivery {
  readonly delivery: Delivery
  /** Key of its endpoint. */
  readonly key: string
  readonly body: Uint8Array
  /** Present where no plan was stored before the attempt. */
  readonly uncommitted?: UncommittedPlan | undefined
  /** True where another router may have its event meanwhile, and have stored this delivery. */
  readonly mayBeRedelivered: boolean
  /** Called when the request is sent. Until then the delivery waits in its endpoint's lane. */
  begun(): void
  /** Called once, when the delivery ends. */
  ended(end: DirectEnd): void
}

/** An untried delivery that is in no queue: its event stays unacknowledged until it is stored. */
export interface BacklogCandidate {
  readonly delivery: Delivery
  readonly body: Uint8Array
  /** Called once: without an argument when it is stored, else with the failure. */
  readonly ended: (why?: StoreFailure) => void
}

/** What this worker's own partitions do with a delivery that is in no queue. */
export interface OwnedPartitions {
  /** Delivers directly where this worker can do so promptly; else returns false. */
  readonly attempt: (partition: number, direct: DirectDelivery) => boolean
  /** Stores a delivery in its endpoint's backlog where it may wait there; else returns false. */
  readonly storeInBacklog: (partition: number, kept: BacklogCandidate) => boolean
}
