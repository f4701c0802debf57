import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { ifFound, streamNotFound } from "../../broker/broker-error.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import { makePartitions } from "../../broker/init.ts"
import { TopologyError } from "../../broker/installed.ts"
import type { PublishError } from "../../broker/publication.ts"
import { changeSubjects, removeStream } from "../../broker/removal.ts"
import type { TopologyOptions } from "../../broker/topology.ts"
import { eraseValue } from "../../broker/values.ts"
import { lastKey } from "../../cluster/ownership.ts"
import { backlogOwnersKey } from "../../delivery/recovery/backlog-owners.ts"
import { watermarkKey, writeWatermark } from "../../delivery/recovery/takeover.ts"

const lookAtStream = Effect.fnUntraced(function* (stream: string) {
  const { streamInfo } = yield* Broker
  return yield* ifFound(streamInfo(`look at stream ${stream}`, stream), streamNotFound)
})

/** Returns which partitions exist: a removed one has no queue. */
export const existing = Effect.fnUntraced(function* (partitions: number) {
  const { names } = yield* Broker
  const indexes = Array.from({ length: partitions }, (_, index) => index)
  return yield* Effect.filter(
    indexes,
    (index) => Effect.map(lookAtStream(names.deliveries(index)), (info) => info !== undefined),
    { concurrency: 8 }
  )
})

/** Creates the streams of partitions that do not exist. */
export const makeTargets = (
  options: TopologyOptions,
  indexes: ReadonlyArray<number>,
  beyond: number
) => (indexes.length === 0 ? Effect.void : makePartitions(options, indexes, beyond))

/**
 * Removes the streams of a partition. Fails if they are not empty.
 *
 * @param remember stores their highest sequence. Facts and message ids refer to sequences, so a new
 *   stream of the same name must not assign one again.
 */
export const removePartition = Effect.fnUntraced(function* (
  index: number,
  remember: (last: number) => Effect.Effect<void, PublishError, Broker>
) {
  const { names } = yield* Broker
  const reached = yield* Failpoint
  // The queue is removed last: while it exists, the partition exists.
  const { backlogOf, deliveriesOf, schedulesOf, removed } = names.subjects
  const subjects = new Map([
    [names.backlog(index), [backlogOf(index)]],
    [names.deliveries(index), [deliveriesOf(index), schedulesOf(index)]]
  ])
  const streams = [...subjects.keys()]
  const listen = (stream: string, subjects: Array<string>) =>
    ifFound(changeSubjects(stream, subjects), streamNotFound)
  // Messages published during the removal must be rejected, not removed with the stream.
  for (const stream of streams) yield* listen(stream, [removed(stream)])
  reached("partition-closed")
  const states = yield* Effect.forEach(streams, (stream) =>
    Effect.map(lookAtStream(stream), (info) => info?.state)
  )
  if (states.some((state) => (state?.messages ?? 0) > 0)) {
    for (const [stream, own] of subjects) yield* listen(stream, own)
    return yield* new TopologyError({
      message: `something was put into partition ${index} while it was removed: run this again`
    })
  }
  yield* remember(Math.max(...states.map((state) => state?.last_seq ?? 0)))
  for (const stream of streams) {
    yield* ifFound(removeStream(stream), streamNotFound)
    reached("stream-removed")
  }
  for (const key of [watermarkKey(index), lastKey(index), backlogOwnersKey(index)])
    yield* eraseValue(names.buckets.workers, key)
})

/**
 * Sets the watermarks of new partitions to the end of the history: it has no facts about them.
 * Returns that end.
 */
export const raiseNewFloors = Effect.fnUntraced(function* (indexes: ReadonlyArray<number>) {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  const floor = { seq: state.last_seq, at: state.messages === 0 ? 0 : Date.parse(state.last_ts) }
  yield* Effect.forEach(indexes, (index) => writeWatermark(index, floor), {
    concurrency: 8,
    discard: true
  })
  return floor
})
