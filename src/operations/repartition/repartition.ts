import { Effect, Exit, Random } from "effect"
import { Broker } from "../../broker/broker.ts"
import { makeGate } from "../../broker/gate.ts"
import type { Layout, LayoutRecord } from "../../broker/installed.ts"
import {
  findPartitions,
  layoutKey,
  readInstalled,
  readLayout,
  readLayoutRecord,
  TopologyError
} from "../../broker/installed.ts"
import { defaultTopology } from "../../broker/topology.ts"
import { writeValue } from "../../broker/values.ts"
import type { Owner } from "../../cluster/ownership.ts"
import { readOwners } from "../../delivery/recovery/backlog-owners.ts"
import { HistoryPosition } from "../../delivery/recovery/completed-deliveries.ts"
import type { PartitionMemory } from "../../delivery/recovery/partition-memory.ts"
import { takeOver } from "../../delivery/recovery/takeover.ts"
import type { Hold } from "./guard.ts"
import { holdAll, refuseOthers } from "./guard.ts"
import type { Moved, Moving } from "./move.ts"
import { moveSubject } from "./move.ts"
import { makeArrivals } from "./relocation.ts"
import { moveSchedules } from "./schedules.ts"
import { settleDecisions } from "./settle.ts"
import { existing, makeTargets, raiseNewFloors, removePartition } from "./streams.ts"
import type { MoveCount } from "./survey.ts"
import { listStrays, survey } from "./survey.ts"

/** Endpoints whose deliveries are moved at the same time. */
const maxConcurrentPartitions = 8
/** Maximum number of passes over a partition in which new messages keep appearing. */
const passes = 100
/** Pause between passes, ms. */
const pollMs = 250
const leaseTtl = 10_000

/** How many messages were moved out of a partition, or removed because they had ended. */
export interface Emptied extends MoveCount {
  readonly ended: number
}

/** The progress of a change of the number of partitions. */
export type RepartitionStep =
  | {
      readonly event: "begun"
      readonly from: number
      readonly to: number
      /** An earlier run was interrupted. */
      readonly resumed: boolean
    }
  /** An earlier run was killed, and its leases must expire first. */
  | { readonly event: "waiting" }
  /** The stored decisions of former owners were carried out. */
  | { readonly event: "settled"; readonly decisions: number }
  /** The number of messages to check. */
  | { readonly event: "counted"; readonly messages: number }
  | ({ readonly event: "looked-at" } & Moved)
  | ({ readonly event: "emptied" } & Emptied)
  | { readonly event: "removed"; readonly partition: number }

interface RepartitionOptions {
  /** The new number of partitions. */
  readonly to: number
  readonly tell: (step: RepartitionStep) => Effect.Effect<void>
  /** How long other processes wait for it if it dies, ms. (Default: 10 s) */
  readonly leaseTtl?: number | undefined
}

/** The result of a change. */
interface Repartitioned {
  readonly from: number
  readonly to: number
  /** What this run moved out of each partition. */
  readonly moved: ReadonlyArray<Emptied>
}

interface State {
  readonly from: number
  readonly record: LayoutRecord
  readonly revision: number
  /** An earlier run has begun to move messages. */
  readonly resumed: boolean
}

/** Reads the number of partitions, or the one before a change that is not finished. */
const inspect = Effect.fnUntraced(function* (to: number) {
  const { record, revision } = yield* readLayoutRecord
  const { change } = record
  if (change !== undefined) {
    const { from, stage } = change
    if (stage === "moving" && change.to !== to)
      return yield* new TopologyError({
        message: `a change from ${from} to ${change.to} partitions was begun and is not finished: run \`petrel repartition ${change.to}\` first, then \`petrel repartition ${to}\``
      })
    return { from, record, revision, resumed: stage === "moving" } satisfies State
  }
  const { partitions } = yield* readLayout
  const { begun } = yield* findPartitions
  if (begun !== partitions)
    return yield* new TopologyError({
      message: `there are streams of a partition ${begun - 1} besides the ${partitions} partitions of this installation, which no worker reads: remove them first if they hold nothing`
    })
  return { from: partitions, record, revision, resumed: false } satisfies State
})

/** Counts what a change would move now. Changes nothing. */
export const planRepartition = Effect.fnUntraced(function* (to: number) {
  const { from } = yield* inspect(to)
  const sources = from === to ? [] : yield* existing(from)
  return { from, to, moves: yield* Effect.forEach(sources, (index) => survey(index, to)) }
})

/**
 * Changes the number of partitions, and moves waiting deliveries to their new partitions. Workers
 * must be stopped, and none can start meanwhile. An interrupted run is resumed by the next one.
 *
 * A waiting delivery is first stored in its new partition and then removed from the old one. A
 * delivery that has ended is only removed, as a new owner would.
 */
export const repartition = Effect.fnUntraced(function* (options: RepartitionOptions) {
  const { tell, to } = options
  const before = yield* inspect(to)
  const unchanged = { from: to, to, moved: [] } satisfies Repartitioned
  if (before.from === to && before.record.change === undefined) return unchanged
  yield* refuseOthers
  const owner: Owner = {
    worker: "repartition",
    instance: (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36),
    ttl: options.leaseTtl ?? leaseTtl
  }
  const hold = yield* holdAll(before.from, owner, tell({ event: "waiting" }))
  const state = yield* inspect(to)
  if (state.from !== before.from)
    return yield* new TopologyError({
      message: `meanwhile there are ${state.from} partitions: run this again`
    })
  return yield* Effect.raceFirst(change(options, state, hold), hold.lost)
}, Effect.scoped)

const change = Effect.fnUntraced(function* (
  { tell, to }: RepartitionOptions,
  state: State,
  hold: Hold
) {
  const { names } = yield* Broker
  const { from, resumed } = state
  const { change: _, ...rest } = state.record
  let { record, revision } = state
  const write = Effect.fnUntraced(function* (next: LayoutRecord) {
    const expected = revision
    const value = JSON.stringify(next)
    const { seq } = yield* writeValue(names.buckets.workers, layoutKey, value, { expected })
    revision = seq
    record = next
  })
  if (from === to) {
    yield* write(rest)
    return { from, to, moved: [] } satisfies Repartitioned
  }
  const found = yield* readInstalled
  const installed = { ...defaultTopology, ...found }
  const isSourced = installed.tenants.length > 0 || found.intake === true
  const { historyAtChange = 0 } = record
  const layout: Layout = { ...installed, partitions: from, historyAtChange, isSourced }

  /** Nothing is moved before this is complete. Until then, the change can be undone. */
  const settle = Effect.gen(function* () {
    yield* write({ ...rest, change: { from, to, stage: "settling" } })
    // Checked again: a worker that started meanwhile may have missed the change.
    yield* refuseOthers
    yield* tell({ event: "begun", from, to, resumed })
    const memories = yield* takeOver(yield* existing(from), new HistoryPosition(0), layout)
    const decisions = yield* settleDecisions(memories, layout, hold.safe)
    yield* tell({ event: "settled", decisions })
    yield* write({ ...rest, change: { from, to, stage: "moving" } })
    return memories
  }).pipe(
    Effect.onExit((exit) => (Exit.isFailure(exit) ? Effect.ignore(write(rest)) : Effect.void))
  )
  const resume = Effect.gen(function* () {
    yield* refuseOthers
    yield* tell({ event: "begun", from, to, resumed })
    const sources = yield* existing(from)
    // A partition that was being removed may have lost one of its two streams.
    yield* makeTargets(installed, sources, record.beyond)
    return yield* takeOver(sources, new HistoryPosition(0), layout)
  })
  const memories = yield* resumed ? resume : settle

  const added = Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index)
  yield* makeTargets(installed, added, record.beyond)
  const moved = yield* moveAll(memories, to, tell, {
    arrivals: makeArrivals(resumed),
    fired: new Set(),
    asOwner: hold.safe,
    gate: makeGate(
      "the broker takes no deliveries: waiting until it does",
      "the broker takes deliveries again"
    ),
    moveDedupe: installed.moveDedupe
  })
  for (const { index } of memories.filter(({ index }) => index >= to)) {
    yield* hold.safe
    yield* removePartition(index, (last) =>
      write({ ...record, beyond: Math.max(record.beyond, last) })
    )
    yield* tell({ event: "removed", partition: index })
  }
  const { seq } = yield* raiseNewFloors(added)
  const { change: __, ...done } = record
  yield* write({ ...done, partitions: to, epoch: done.epoch + 1, historyAtChange: seq })
  return { from, to, moved } satisfies Repartitioned
})

const moveAll = Effect.fnUntraced(function* (
  memories: ReadonlyArray<PartitionMemory>,
  to: number,
  tell: RepartitionOptions["tell"],
  common: Omit<Moving, "moved">
) {
  let messages = 0
  for (const { index } of memories) {
    const { endpoints, schedules } = yield* listStrays(index, to)
    messages += endpoints.reduce((sum, stray) => sum + stray.messages, schedules)
  }
  yield* tell({ event: "counted", messages })
  return yield* Effect.forEach(
    memories,
    Effect.fnUntraced(function* (memory) {
      const counts = { queue: 0, schedules: 0, backlog: 0, ended: 0 }
      yield* emptyOut(memory, to, {
        ...common,
        moved: (moved) => {
          counts[moved.kind] += moved.messages - moved.ended
          counts.ended += moved.ended
          return tell({ event: "looked-at", ...moved })
        }
      })
      const emptied: Emptied = { partition: memory.index, ...counts }
      yield* tell({ event: "emptied", ...emptied })
      return emptied
    })
  )
})

/** Moves messages to other partitions until the stream's leader lists no more of them. */
const emptyOut = Effect.fnUntraced(function* (memory: PartitionMemory, to: number, moving: Moving) {
  const { backlogEnd = Number.MAX_SAFE_INTEGER } = memory
  const owners = [
    ...(yield* readOwners(memory.index)),
    { owner: Number.MAX_SAFE_INTEGER, after: backlogEnd }
  ]
  for (let pass = 0; pass < passes; pass++) {
    const { endpoints, schedules } = yield* listStrays(memory.index, to)
    // A replica that lags may show again what was moved before.
    const now = pass === 0 ? moving : { ...moving, arrivals: makeArrivals(true) }
    const found = schedules === 0 ? 0 : yield* moveSchedules(now, memory, to)
    if (endpoints.length + found === 0) return
    // What was stored late in a backlog goes on from the queue where it is still there.
    for (const kind of ["backlog", "queue"] as const)
      yield* Effect.forEach(
        endpoints.filter((stray) => stray.kind === kind),
        (stray) => moveSubject(now, { ...stray, partition: memory, owners }),
        { concurrency: maxConcurrentPartitions, discard: true }
      )
    if (pass > 0) yield* Effect.sleep(pollMs)
  }
  return yield* new TopologyError({
    message: `deliveries keep coming into partition ${memory.index}: stop whatever puts them there, and run this again`
  })
})
