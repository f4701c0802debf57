import { Effect } from "effect"
import type { Ownership } from "./ownership.ts"

/** Pause between checks whether a lease was renewed, ms. */
const renewalPause = 250

/** Guards what a worker records about the deliveries of a partition. */
export interface OwnerFence {
  /** True while nobody else can be owner. Sends no request. */
  readonly holds: () => boolean
  /**
   * Returns true for the owner, and false once another worker owns or owned the partition. Waits
   * while that is unknown.
   */
  readonly stillOwner: Effect.Effect<boolean>
  /**
   * Passes for the owner, waits while ownership is unknown, and interrupts once another worker owns
   * or owned the partition: the new owner makes the decisions of the former one.
   */
  readonly asOwner: Effect.Effect<void>
}

/** Makes the fence of a partition from its lease. */
export const ownerFence = ({ holds, lost }: Pick<Ownership, "holds" | "lost">): OwnerFence => {
  const isRenewed = Effect.as(Effect.repeat(Effect.sleep(renewalPause), { until: holds }), true)
  const stillOwner = Effect.suspend(() =>
    holds() ? Effect.succeed(true) : Effect.raceFirst(Effect.as(lost, false), isRenewed)
  )
  return {
    holds,
    stillOwner,
    asOwner: Effect.flatMap(stillOwner, (isOwner) => (isOwner ? Effect.void : Effect.interrupt))
  }
}
