/* What routing asks of whoever owns an endpoint's partition: to take a delivery without a queue. */
import type { Effect } from "effect"
import type { StoreFailure } from "../broker/publish-once.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import type { Plan } from "../domain/fact.ts"

/** What became of a delivery that was to be attempted from its event. */
export type DirectEnd =
  /** The history has its end. */
  | { readonly _tag: "Delivered" }
  /** No request was made. */
  | { readonly _tag: "Untried" }
  /** The history tells of an attempt that did not succeed. */
  | { readonly _tag: "Failed"; readonly progress: Progress }
  /** It was cut off: the history may tell of it, or not. */
  | { readonly _tag: "Unknown" }

/** The plan of an event that goes to one endpoint alone, where the history had none at first. */
export interface UncommittedPlan {
  /** Under which the history takes the plan once. */
  readonly id: string
  /** For how long the history surely knows that id if it has it, ms. */
  readonly safeRepublishMs: number
  /** The plan, for the caller to tell it with the end of the delivery; undefined where nobody may. */
  readonly piggyback: () => Plan | undefined
  /** True where the history has it, by itself. */
  readonly isCommitted: boolean
  /** True where it may be another plan that counts. */
  readonly isUnsure: boolean
  /** Sees to it that the history has a plan of the event, and gives its sequence there. */
  readonly committed: Effect.Effect<number>
  /** Called where the history turns out to have had a plan at a sequence. */
  readonly adoptExisting: (seq: number) => void
  /** Called where that is the one that was told with the end. */
  readonly confirmOwn: () => void
}

/** A delivery that is in no queue: its event is in hand until it has come to its end here. */
export interface DirectDelivery {
  readonly delivery: Delivery
  /** Of its endpoint. */
  readonly key: string
  readonly body: Uint8Array
  /** Where no plan was stored before. */
  readonly uncommitted?: UncommittedPlan | undefined
  /** Told when its request goes out; before that it stands in line. */
  begun(): void
  /** Told once what became of it. */
  ended(end: DirectEnd): void
}

/** An untried delivery that is in no queue: its event is in hand until it is stored. */
export interface BacklogCandidate {
  readonly delivery: Delivery
  readonly body: Uint8Array
  /** Told once why it is not known to be stored, or nothing where it is. */
  readonly ended: (why?: StoreFailure) => void
}
