import { Deferred, Effect, FiberSet, Schedule, Schema, Semaphore } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { Layout } from "../../broker/installed.ts"
import { partitionOfKey } from "../../domain/names.ts"
import type { StoredHealth } from "../../endpoints/health-store.ts"
import { listHealth } from "../../endpoints/health-store.ts"
import { HistoryPosition } from "./completed-deliveries.ts"
import type { PartitionMemory } from "./partition-memory.ts"
import { settledUpTo, takeOver, takeOverHanded } from "./takeover.ts"

/** The stream was truncated: the broker lost acknowledged messages, and reuses their sequences. */
export class StreamTruncated extends Schema.TaggedError<StreamTruncated>()("TailLost", {
  message: Schema.String
}) {}

/** Pause before a failed check is repeated, ms. */
const pollMs = 500

/**
 * Checks after each reconnect whether the stream was truncated: a broker that died may have lost
 * what it had not synced to disk.
 *
 * @param highest returns the highest sequence that this worker knows.
 */
export const watchForTruncation = Effect.fnUntraced(function* (
  stream: string,
  highest: () => number
) {
  const { onReconnect, streamInfo } = yield* Broker
  const lost = yield* Deferred.make<never, StreamTruncated>()
  const lose = Deferred.fail(
    lost,
    new StreamTruncated({
      message: `${stream} has lost what was stored in it last: what waits there is read again`
    })
  )
  let doubts = 0
  const check = streamInfo(`look at ${stream}`, stream).pipe(
    Effect.retry(Schedule.spaced(pollMs)),
    Effect.orDie,
    Effect.flatMap(({ state }) => (state.last_seq < highest() ? lose : Effect.void))
  )
  const run = yield* FiberSet.makeRuntime<never>()
  const forget = onReconnect(() => {
    doubts++
    run(check).addObserver(() => {
      doubts--
    })
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  return {
    /**
     * True from a reconnect until the check has passed, and for good if the stream was truncated.
     */
    isDoubtful: () => doubts > 0 || Deferred.isDoneUnsafe(lost),
    /** Reports that the stream reused a sequence. */
    lose,
    lost: Deferred.await(lost)
  }
})

/** What a new owner starts with. */
interface Taken {
  readonly memory: PartitionMemory
  /** Stored health of the partition's endpoints that are not healthy. */
  readonly health: ReadonlyArray<StoredHealth>
}

interface TakeoverRequest {
  readonly index: number
  taken: Taken | undefined
}

/**
 * Takes over partitions one by one. Requests that arrive during a read of the history are answered
 * together by the next read, which takes no longer for many. The same holds for stored endpoint
 * health.
 *
 * @param layout see `takeOver`.
 */
export const makeTakeovers = Effect.fnUntraced(function* (
  layout: Pick<Layout, "historyAtChange" | "partitions">
) {
  const historyPosition = new HistoryPosition(0)
  const history = yield* watchHistory(historyPosition)
  const one = yield* Semaphore.make(1)
  const waiting = new Set<TakeoverRequest>()
  const byPartition = (found: ReadonlyArray<StoredHealth>) =>
    Map.groupBy(found, ({ key }) => partitionOfKey(key, layout.partitions))

  const read = Effect.fnUntraced(function* (wanted: TakeoverRequest) {
    if (wanted.taken !== undefined) return wanted.taken
    const all = [...waiting]
    waiting.clear()
    const indexes = all.map(({ index }) => index)
    const [memories, found] = yield* Effect.all(
      [takeOver(indexes, historyPosition, layout), listHealth],
      {
        concurrency: 2
      }
    )
    const health = byPartition(found)
    for (const each of all) {
      const memory = memories.find(({ index }) => index === each.index)
      if (memory !== undefined) each.taken = { memory, health: health.get(each.index) ?? [] }
    }
    return wanted.taken
  })

  /** Never returns undefined: each read includes the partition that asks. */
  const takeOne = (index: number) =>
    Effect.suspend(() => {
      const wanted: TakeoverRequest = { index, taken: undefined }
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

  /** Takes over what the owner before has handed over. Reads the history where that is unreadable. */
  const takeHanded = Effect.fnUntraced(function* (index: number, handed: Uint8Array) {
    const [memory, found] = yield* Effect.all(
      [takeOverHanded(index, historyPosition, handed), listHealth],
      { concurrency: 2 }
    )
    if (memory === undefined) return yield* takeOne(index)
    return { memory, health: byPartition(found).get(index) ?? [] } satisfies Taken
  })

  return {
    historyPosition,
    history,
    /** @param handed what the owner before remembered. (Default: the history is read) */
    takeOver: (index: number, handed?: Uint8Array) =>
      handed === undefined ? takeOne(index) : takeHanded(index, handed)
  }
})

/** Pause before a failed check of the history is repeated, ms. */
const retryPauseMs = 500

/** What a worker knows of the end of the history. */
export interface HistoryEnd {
  /** True from a reconnect until it is known whether the history was truncated. */
  readonly isDoubtful: () => boolean
  /** Fails when it was: remembered completions may have no fact any more. */
  readonly lost: Effect.Effect<never, StreamTruncated>
}

/**
 * Checks after each reconnect whether the history was truncated, and lowers the position to what is
 * certain. The broker may have reused the lost sequences for other facts.
 */
const watchHistory = Effect.fnUntraced(function* (historyPosition: HistoryPosition) {
  const { onReconnect } = yield* Broker
  const run = yield* FiberSet.makeRuntime<Broker>()
  let checks = 0
  let lost = yield* Deferred.make<never, StreamTruncated>()
  const check = Effect.suspend(() => settledUpTo(historyPosition.lastRead)).pipe(
    Effect.retry(Schedule.spaced(retryPauseMs)),
    Effect.orDie
  )
  const forget = onReconnect(() => {
    historyPosition.doubt()
    const mine = ++checks
    run(
      Effect.map(check, ({ isLost, seq }) => {
        // A later reconnect has its own check.
        if (mine !== checks) return
        historyPosition.fallBack(seq)
        if (!isLost) return
        const before = lost
        lost = Deferred.makeUnsafe()
        Deferred.doneUnsafe(before, Effect.fail(historyLost))
      })
    )
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  const end: HistoryEnd = {
    isDoubtful: () => historyPosition.isDoubtful,
    lost: Effect.suspend(() => Deferred.await(lost))
  }
  return end
})

const historyLost = new StreamTruncated({
  message: "the history has lost what was stored in it last: what has ended is read again"
})
