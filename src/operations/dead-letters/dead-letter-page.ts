import { Effect, Stream } from "effect"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import { readFates } from "../../history/dead-fates.ts"
import { readDeadLetters } from "../../history/dead-letters.ts"
import { readLateDeliveries } from "../../history/late-deliveries.ts"
import type { DeadLetterFilter } from "./dead-letter-selection.ts"
import type { DeadLetterView } from "./dead-letter-view.ts"
import { deadLetterView } from "./dead-letter-view.ts"

/** A page of dead letters, oldest first, and the id after which the next one begins. */
export interface DeadLetterPage {
  readonly deadLetters: ReadonlyArray<DeadLetterView>
  readonly next: number | undefined
}

/**
 * Reads a page of the dead letters that a filter selects, and what became of each.
 *
 * @param after the id after which it begins. (Default: at the oldest)
 */
export const pageDeadLetters = Effect.fnUntraced(function* (
  filter: Omit<DeadLetterFilter, "id">,
  after: number | undefined,
  limit: number
) {
  const found = yield* readDeadLetters({ ...filter, after }).pipe(
    Stream.take(limit + 1),
    Stream.runCollect
  )
  const page = found.slice(0, limit)
  const [oldest] = page
  if (oldest === undefined) return { deadLetters: [], next: undefined } satisfies DeadLetterPage
  // A dead letter is sent again only after it was stored.
  const [fates, late] = yield* Effect.all(
    [
      readFates(filter, {
        since: oldest.deadAt - maxClockSkewMs,
        ids: new Set(page.map(({ id }) => id))
      }),
      readLateDeliveries(filter)
    ],
    { concurrency: 2 }
  )
  return {
    deadLetters: page.map((letter) =>
      deadLetterView(letter, fates.get(letter.id), late(letter.delivery))
    ),
    next: found.length > limit ? page.at(-1)?.id : undefined
  } satisfies DeadLetterPage
})
