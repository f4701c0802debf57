import type { Delivery, RoundIdentity } from "../../domain/delivery.ts"

/** What tells a further round of an endpoint's deliveries from others. */
export interface Round extends RoundIdentity {
  /** Sequence in DEAD of what is sent again. */
  readonly dead?: number
}

/** What a round sends. */
export interface Contents extends Pick<Delivery, "event" | "type" | "content" | "origin"> {
  readonly body: Uint8Array
}

/**
 * What came of it: the round was `begun`, somebody had claimed and not stored it (`finished`), it
 * had begun before, or there is nothing left to send (where it was claimed, it has ended with that).
 */
export type StartedRound = "begun" | "finished" | "before" | "gone"

/** Numbers of rounds by what came of them. */
export type RoundCounts = Readonly<Record<StartedRound, number>>

/** To which endpoint, as it is configured now; the generation of one that is gone is that of its deliveries. */
export interface RoundTarget {
  readonly tenant: string
  readonly endpoint: string
  readonly generation: string
  readonly revision: number
  /** From the start of a round to its deadline, ms. */
  readonly window: number
}
