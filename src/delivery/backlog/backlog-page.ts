import type { BacklogEntry, BacklogLabel } from "../../domain/backlog-message.ts"
import type { Place } from "../../domain/fact.ts"
import { slotOf } from "../../domain/fact.ts"

/** A message of a backlog, unpacked; `entries` is undefined where this version cannot read it. */
export interface BacklogPage {
  readonly seq: number
  /** When it was stored, ms since the epoch. */
  readonly at: number
  readonly entries: ReadonlyArray<BacklogEntry> | undefined
  readonly label: BacklogLabel | undefined
  readonly body: Uint8Array
}

/** A delivery in a backlog, and where it lies. */
export interface BacklogPosition {
  readonly page: BacklogPage
  readonly of: BacklogEntry
  readonly slot: number
  /** The slot behind it. */
  readonly next: number
}

/** Returns the place of a delivery within its stream. */
export const placeIn = ({ of, page: { at, seq } }: BacklogPosition): Omit<Place, "stream"> =>
  of.entry === undefined ? { seq, at } : { seq, at, entry: of.entry }

/** Returns the deliveries of a message, in order; none where this version cannot read it. */
export const positionsIn = (page: BacklogPage): ReadonlyArray<BacklogPosition> =>
  (page.entries ?? []).map((of, index, { length }) => {
    const slot = slotOf({ seq: page.seq, ...(of.entry === undefined ? {} : { entry: of.entry }) })
    const isLast = index === length - 1
    return {
      page,
      of,
      slot,
      next: isLast ? page.seq + 1 : slotOf({ seq: page.seq, entry: index + 2 })
    }
  })

/** Returns the size of the body that a delivery is sent with, bytes. */
export const bodyBytes = ({ of, page }: BacklogPosition): number =>
  of.entry === undefined ? page.body.length : of.reference.bytes

/** True for a message of references. */
export const isPacked = ({ entries }: BacklogPage): boolean => entries?.[0]?.entry !== undefined
