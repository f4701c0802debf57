import { Effect, Semaphore } from "effect"
import type { PartitionMemory } from "./partition-memory.ts"
import { Horizon } from "./settled.ts"
import { takeOver } from "./takeover.ts"

interface Wanted {
  readonly index: number
  memory: PartitionMemory | undefined
}

/**
 * Asks the history for partitions one by one, and reads it once for all that were taken while it
 * was being read for others: a reading does not take longer for many.
 */
export const makeTakeovers = Effect.gen(function* () {
  const horizon = new Horizon(0)
  const one = yield* Semaphore.make(1)
  const waiting = new Set<Wanted>()

  const read = Effect.fnUntraced(function* (wanted: Wanted) {
    if (wanted.memory !== undefined) return wanted.memory
    const all = [...waiting]
    waiting.clear()
    const memories = yield* takeOver(
      all.map(({ index }) => index),
      horizon
    )
    for (const each of all) each.memory = memories.find(({ index }) => index === each.index)
    return wanted.memory
  })

  /** Undefined never: what it was asked for is among what it reads. */
  return (index: number) =>
    Effect.suspend(() => {
      const wanted: Wanted = { index, memory: undefined }
      waiting.add(wanted)
      return Effect.ensuring(
        one.withPermit(
          Effect.suspend(() => {
            waiting.add(wanted)
            return read(wanted)
          })
        ),
        Effect.sync(() => waiting.delete(wanted))
      )
    })
})
