import { Effect } from "effect"
import type { Divergence } from "./divergence.ts"
import { compareNew, readRecord, writeRecord } from "./record.ts"
import { restartSources } from "./restart.ts"

/**
 * Starts sources again that lost what was copied from them, and returns them. Needs the right to
 * change streams.
 */
export const repairSources = Effect.gen(function* () {
  const before = yield* readRecord
  const { record } = yield* compareNew(before, true)
  if (record.divergences.length > 0) {
    yield* restartSources(record.divergences)
    const after = yield* compareNew(before, true)
    yield* writeRecord(after.record)
  }
  return record.divergences satisfies ReadonlyArray<Divergence>
})
