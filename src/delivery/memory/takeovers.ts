import { Effect, Semaphore } from "effect"
import { partitionOf } from "../../domain/names.ts"
import type { StoredHealth } from "../endpoints/health-record.ts"
import { listHealth } from "../endpoints/health-record.ts"
import type { PartitionMemory } from "./partition-memory.ts"
import { Horizon } from "./settled.ts"
import { takeOver } from "./takeover.ts"

/** What an owner begins with. */
export interface Taken {
  readonly memory: PartitionMemory
  /** Of the partition's endpoints that are not well. */
  readonly health: ReadonlyArray<StoredHealth>
}

interface Wanted {
  readonly index: number
  taken: Taken | undefined
}

/**
 * Asks the history for partitions one by one, and reads it once for all that were taken while it
 * was being read for others: a reading does not take longer for many. The same for what is stored
 * of endpoints that are not well.
 *
 * @param partitions how many there are.
 */
export const makeTakeovers = Effect.fnUntraced(function* (partitions: number) {
  const horizon = new Horizon(0)
  const one = yield* Semaphore.make(1)
  const waiting = new Set<Wanted>()

  const read = Effect.fnUntraced(function* (wanted: Wanted) {
    if (wanted.taken !== undefined) return wanted.taken
    const all = [...waiting]
    waiting.clear()
    const indexes = all.map(({ index }) => index)
    const [memories, found] = yield* Effect.all(
      [takeOver(indexes, horizon, partitions), listHealth],
      {
        concurrency: 2
      }
    )
    const health = Map.groupBy(found, ({ key }) => {
      const [tenant = "", id = ""] = key.split(".")
      return partitionOf(tenant, id, partitions)
    })
    for (const each of all) {
      const memory = memories.find(({ index }) => index === each.index)
      if (memory !== undefined) each.taken = { memory, health: health.get(each.index) ?? [] }
    }
    return wanted.taken
  })

  /** Undefined never: what it was asked for is among what it reads. */
  return (index: number) =>
    Effect.suspend(() => {
      const wanted: Wanted = { index, taken: undefined }
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
