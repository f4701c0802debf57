import { Effect } from "effect"
import { maxNodeSkewMs } from "../../domain/clock-bounds.ts"
import type { Addressee, Delivery } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { placeName } from "../../domain/fact.ts"
import type { Sighting } from "../../history/locate.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"
import { type BacklogOwner, isLate } from "./backlog-owners.ts"
import type { MessageIdentity, PartitionMemory, StreamMemory } from "./partition-memory.ts"

/**
 * True for an entry of a backlog that a former owner stored late, until it is delivered from there.
 * The same delivery may go on at another place, so that it proves nothing.
 *
 * @param owners of the partition, the oldest first.
 * @param backlog what is known of the partition's backlogs.
 * @param writer who stored it, see `BacklogLabel`; undefined where that is not known.
 */
export const isUndecided = (
  owners: ReadonlyArray<BacklogOwner>,
  { recordedAttempts }: Pick<StreamMemory, "recordedAttempts">,
  place: MessageIdentity,
  writer: number | undefined
): boolean =>
  writer !== undefined && isLate(owners, place.seq, writer) && !recordedAttempts.isBegun(place)

/** An entry that was stored late, and what is known of its delivery there. */
export interface LateEntry {
  readonly place: Place
  readonly delivery: Pick<Delivery, "eventAt" | "eventSeq" | "origin" | "progress" | "round">
}

/**
 * True where a sighting shows that a delivery need not be sent from a late entry: it has ended, is
 * still where it was moved from, was moved from there to another place, or was attempted at another
 * one since. Anything less proves nothing: a place where it was before looks the same.
 */
export const isHandledBy = (
  { delivery: { origin, progress }, place }: LateEntry,
  sighting: Sighting
): boolean => {
  const here = placeName(place)
  const isMoved = (from: string | undefined) => origin !== undefined && from === origin
  if (sighting.where === "history") {
    const { attempt = 0, from, kind, origin } = sighting.fact
    if (kind !== "attempt-failed") return true
    if (from !== undefined && placeName(from) === here) return false
    return isMoved(origin) || attempt > progress.attempts
  }
  const there = placeName(sighting.place)
  if (there === here) return false
  return there === origin || isMoved(sighting.origin) || sighting.attempts > progress.attempts
}

/** Returns which late entries of an endpoint's backlog need not be delivered from there. */
export const findHandledEntries = Effect.fnUntraced(function* (
  { backlog, index }: Pick<PartitionMemory, "backlog" | "index">,
  owners: ReadonlyArray<BacklogOwner>,
  to: Addressee,
  entries: ReadonlyArray<LateEntry>
) {
  const taken = new Set<LateEntry>()
  const byRound = Map.groupBy(entries, ({ delivery }) => roundKey(delivery))
  const seqs = new Set(entries.map(({ delivery }) => delivery.eventSeq))
  const since = Math.min(...entries.map(({ delivery }) => delivery.eventAt))
  yield* locate(
    {
      within: { partition: index },
      endpoints: [to],
      places: ["queue", "backlog", "history"],
      historySince: { fromTime: Math.max(0, since - maxNodeSkewMs) },
      isWanted: (eventSeq) => seqs.has(eventSeq)
    },
    (sighting) => {
      const isProof =
        sighting.where !== "backlog" ||
        !isUndecided(owners, backlog, sighting.place, sighting.owner)
      for (const entry of isProof ? (byRound.get(roundKeyOf(sighting)) ?? []) : [])
        if (isHandledBy(entry, sighting)) taken.add(entry)
      return taken.size === entries.length
    }
  )
  return taken as ReadonlySet<LateEntry>
})
