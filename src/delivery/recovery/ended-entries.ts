import { Effect } from "effect"
import type { DeliveryReference } from "../../domain/backlog-message.ts"
import type { Place } from "../../domain/fact.ts"
import { slotOf } from "../../domain/fact.ts"
import { writeEnded } from "../retry/retry-records.ts"
import type { CompletedDeliveries } from "./completed-deliveries.ts"

/**
 * Stores which entries of a message have ended, or have left it, so that the next owner knows it
 * although the history's watermark has passed their facts.
 *
 * @param place of the message.
 * @returns how many have ended.
 */
export const saveEnded = Effect.fnUntraced(function* (
  completed: Pick<CompletedDeliveries, "has">,
  place: Omit<Place, "entry">,
  { deadline, entries }: HeldEntries
) {
  const { at, seq } = place
  const ended = numbers(entries).filter((entry) => completed.has(slotOf({ seq, entry }), at))
  if (ended.length > 0) yield* writeEnded(place, ended, deadline)
  return ended.length
})

/** How many entries a message holds, and the last of their deadlines, ms since the epoch. */
export interface HeldEntries {
  readonly entries: number
  readonly deadline: number
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** Returns what a message of references holds. */
export const heldIn = (
  references: ReadonlyArray<Pick<DeliveryReference, "deadline">>
): HeldEntries => ({
  entries: references.length,
  deadline: references.reduce((latest, { deadline }) => Math.max(latest, deadline), 0)
})

/** Returns the slots of a message's entries. */
export const slotsOf = (seq: number, { entries }: HeldEntries): ReadonlyArray<number> =>
  numbers(entries).map((entry) => slotOf({ seq, entry }))
