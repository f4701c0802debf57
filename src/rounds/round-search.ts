import { Effect } from "effect"
import type { Addressee } from "../domain/delivery.ts"
import { readRoundKey } from "../domain/delivery.ts"
import type { Sighting, Whereabouts } from "../history/locate.ts"
import { locate, roundKeyOf } from "../history/locate.ts"

/**
 * Returns the `roundKey`s of the rounds that have, or had, a message: it waits in the queue or in
 * the backlog, or the history has a fact of it. A retry that waits as a schedule has a fact, too.
 *
 * @param from a sequence of HISTORY before all facts of these rounds.
 */
export const findRounds = Effect.fnUntraced(function* (
  endpoint: Addressee,
  partition: number,
  wanted: ReadonlySet<string>,
  from: number
) {
  const found = new Set<string>()
  const events = new Set([...wanted].map((key) => readRoundKey(key)?.eventSeq))
  let fromSeq = from
  const note = (sighting: Sighting) => {
    if (sighting.where === "history") fromSeq = sighting.seq + 1
    const key = roundKeyOf(sighting)
    if (wanted.has(key)) found.add(key)
    return found.size === wanted.size
  }
  const look = (...places: ReadonlyArray<Whereabouts>) =>
    locate(
      {
        within: { partition },
        endpoints: [endpoint],
        places,
        historySince: { fromSeq },
        isWanted: (seq) => events.has(seq)
      },
      note
    )
  if (wanted.size === 0) return found
  // Most rounds have ended, so that the history suffices.
  yield* look("history")
  // The history comes last: it has a fact of what moved meanwhile.
  if (found.size < wanted.size) yield* look("queue", "backlog", "history")
  return found
})
