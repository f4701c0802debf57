import { Effect } from "effect"
import type { RoundCounts } from "../../rounds/round.ts"
import type { ProgressView } from "./replay-progress.ts"
import { remark } from "./terminal.ts"

const noRounds: RoundCounts = { begun: 0, finished: 0, before: 0, gone: 0 }

/**
 * Sends rounds and shows their progress. Returns the result and the counts.
 *
 * @param brokenOff returns how to continue, if it ends before all are sent.
 */
export const watchRounds = <A, E, R>(
  run: (progress: (counts: RoundCounts) => void) => Effect.Effect<A, E, R>,
  total: number,
  progress: ProgressView,
  brokenOff: (counts: RoundCounts) => string
) =>
  Effect.suspend(() => {
    let counts = noRounds
    const stopped = Effect.suspend(() => {
      const handled = Object.values(counts).reduce((sum, count) => sum + count, 0)
      return handled < total ? remark(brokenOff(counts)) : Effect.void
    })
    progress.total(total)
    return run((now) => {
      counts = now
      progress.advance()
    }).pipe(
      Effect.ensuring(Effect.sync(progress.clear)),
      Effect.onInterrupt(() => stopped),
      Effect.tapError(() => stopped),
      Effect.map((done) => ({ done, counts }))
    )
  })
