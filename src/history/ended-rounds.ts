import { Effect } from "effect"
import { maxNodeSkewMs } from "../domain/clock-bounds.ts"
import type { Addressee, Delivery } from "../domain/delivery.ts"
import { locate, roundKeyOf } from "./locate.ts"

/**
 * Returns which rounds of an endpoint's deliveries have ended, by `roundKey`. Reads the endpoint's
 * facts since the first of their events.
 *
 * @param partition of the endpoint.
 */
export const findEndedRounds = Effect.fnUntraced(function* (
  partition: number,
  to: Addressee,
  deliveries: ReadonlyArray<Pick<Delivery, "eventAt" | "eventSeq">>
) {
  const ended = new Set<string>()
  const seqs = new Set(deliveries.map(({ eventSeq }) => eventSeq))
  const since = Math.min(...deliveries.map(({ eventAt }) => eventAt))
  yield* locate(
    {
      within: { partition },
      endpoints: [to],
      places: ["history"],
      historySince: { fromTime: Math.max(0, since - maxNodeSkewMs) },
      isWanted: (eventSeq) => seqs.has(eventSeq)
    },
    (sighting) => {
      if (sighting.where === "history" && sighting.fact.kind !== "attempt-failed")
        ended.add(roundKeyOf(sighting))
      return false
    }
  )
  return ended as ReadonlySet<string>
})
