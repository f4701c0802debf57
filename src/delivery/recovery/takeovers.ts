import { Deferred, Effect, FiberSet, Schedule, Semaphore } from "effect"
import { Broker } from "../../broker/connection.ts"
import { partitionOf } from "../../domain/names.ts"
import type { StoredHealth } from "../../endpoints/health-record.ts"
import { listHealth } from "../../endpoints/health-record.ts"
import { StreamTruncated } from "../backlog/truncation-watch.ts"
import { HistoryPosition } from "./completed-deliveries.ts"
import type { PartitionMemory } from "./partition-memory.ts"
import { settledUpTo, takeOver } from "./takeover.ts"

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
  const horizon = new HistoryPosition(0)
  const history = yield* watchHistory(horizon)
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
  const takeOne = (index: number) =>
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
  return { horizon, history, takeOver: takeOne }
})

/** Pause before the history is looked at again where that failed, ms. */
const retryPauseMs = 500

/** What a worker knows of the end of the history. */
export interface HistoryEnd {
  /** True from an interruption until it is known whether something is lost. */
  readonly isDoubtful: () => boolean
  /** Fails when something is: what is remembered of deliveries may have no fact any more. */
  readonly lost: Effect.Effect<never, StreamTruncated>
}

/**
 * Takes back after each interruption what the horizon cannot be sure of: the broker may have lost the
 * end of the history, and have given its sequences to other facts since.
 */
const watchHistory = Effect.fnUntraced(function* (horizon: HistoryPosition) {
  const { onReconnect } = yield* Broker
  const run = yield* FiberSet.makeRuntime<Broker>()
  let checks = 0
  let lost = yield* Deferred.make<never, StreamTruncated>()
  const check = Effect.suspend(() => settledUpTo(horizon.known)).pipe(
    Effect.retry(Schedule.spaced(retryPauseMs)),
    Effect.orDie
  )
  const forget = onReconnect(() => {
    horizon.doubt()
    const mine = ++checks
    run(
      Effect.map(check, ({ isLost, seq }) => {
        // A later interruption has a check of its own.
        if (mine !== checks) return
        horizon.fallBack(seq)
        if (!isLost) return
        const before = lost
        lost = Deferred.makeUnsafe()
        Deferred.doneUnsafe(before, Effect.fail(historyLost))
      })
    )
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  const end: HistoryEnd = {
    isDoubtful: () => horizon.isDoubtful,
    lost: Effect.suspend(() => Deferred.await(lost))
  }
  return end
})

const historyLost = new StreamTruncated({
  message: "the history has lost what was stored in it last: what has ended is read anew"
})
