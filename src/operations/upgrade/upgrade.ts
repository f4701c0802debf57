import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { LayoutRecord } from "../../broker/installed.ts"
import {
  FeatureLevels,
  layoutKey,
  levelOf,
  readLayout,
  readLayoutRecord,
  refuseChange,
  TopologyError
} from "../../broker/installed.ts"
import { writeValue } from "../../broker/values.ts"
import { levelOfWorker, readRoster } from "../../cluster/roster.ts"

/** A live worker that does not know the level to raise to. */
export interface OldWorker {
  readonly worker: string
  readonly host: string
  readonly pid: number
}

/** What raising the feature level would do now. */
export interface UpgradePlan {
  readonly from: number
  /** The newest level that this version knows; equal to `from` if there is nothing to do. */
  readonly to: number
  /** Workers that have to be stopped, or replaced by this version, before. */
  readonly old: ReadonlyArray<OldWorker>
}

const readOldWorkers = Effect.fnUntraced(function* (level: number) {
  const { members } = yield* readRoster
  return [...members.values()]
    .filter(({ said }) => levelOfWorker(said) < level)
    .map(({ said }): OldWorker => ({ worker: said.id, host: said.host, pid: said.pid }))
})

/** Fails while a worker is alive that does not know the level. */
export const refuseOldWorkers = Effect.fnUntraced(function* (level: number) {
  const old = yield* readOldWorkers(level)
  const [first] = old
  if (first === undefined) return
  const who =
    old.length === 1
      ? `the worker ${first.worker} (on ${first.host}, process ${first.pid}) is`
      : `${old.length} workers (${old.map(({ worker }) => worker).join(", ")}) are`
  return yield* new TopologyError({
    message: `${who} of a version that does not know feature level ${level}: replace older processes first; a worker that was killed counts as running for some 10 s more`
  })
})

/** Returns what raising the level of this installation would do. Changes nothing. */
export const planUpgrade = Effect.gen(function* () {
  yield* readLayout
  const { record } = yield* readLayoutRecord
  const { newest } = yield* FeatureLevels
  const from = levelOf(record)
  const old = from === newest ? [] : yield* readOldWorkers(newest)
  return { from, to: newest, old } satisfies UpgradePlan
})

/**
 * Raises the feature level of the installation to the newest one that this version knows. Fails
 * while a worker that does not know it is alive, and while the number of partitions is being
 * changed. Nothing takes it back.
 */
export const upgrade = Effect.gen(function* () {
  const { names } = yield* Broker
  const { from, to } = yield* planUpgrade
  if (from === to) return { from, to }
  yield* refuseOldWorkers(to)
  yield* refuseChange
  const { record: before, revision } = yield* readLayoutRecord
  const write = (record: LayoutRecord, expected: number) =>
    Effect.map(
      writeValue(names.buckets.workers, layoutKey, JSON.stringify(record), { expected }),
      ({ seq }) => seq
    )
  const { raising: _, ...record } = before
  // Announced first: a worker that joins reads this after its first heartbeat, so one of the two
  // sees the other.
  const announced = yield* write({ ...record, raising: to }, revision)
  yield* refuseOldWorkers(to).pipe(Effect.tapError(() => Effect.ignore(write(record, announced))))
  yield* write({ ...record, level: to }, announced)
  return { from, to }
})
