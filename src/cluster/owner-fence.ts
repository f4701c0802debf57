import { Effect } from "effect"
import type { Ownership } from "./ownership.ts"

/** Pause before it is looked again whether a lease was renewed, ms. */
const renewalPause = 250

/** Tells what a worker may record about the deliveries of a partition. */
export interface OwnerFence {
  /** True while nobody else can be owner; asks nobody. */
  readonly holds: () => boolean
  /**
   * True for the owner, false once another worker has or had the partition. Waits while this worker
   * cannot tell.
   */
  readonly stillOwner: Effect.Effect<boolean>
  /**
   * Passes for the owner, waits while this worker cannot tell, and interrupts once another worker has
   * or had the partition: what a former owner would decide, the new one decides.
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
