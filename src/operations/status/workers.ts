import { Effect, Schema } from "effect"
import type { Present } from "../../cluster/roster.ts"
import { Heartbeat, Role, readPresent } from "../../cluster/roster.ts"
import { Timestamp } from "../../domain/timestamp.ts"

/** A worker process. All but its name is absent if it has stopped. */
export const WorkerState = Schema.Struct({
  worker: Schema.String,
  alive: Schema.Boolean,
  host: Schema.optionalKey(Schema.String),
  /** ms since the epoch. */
  startedAt: Schema.optionalKey(Timestamp),
  roles: Schema.optionalKey(Schema.Array(Role)),
  /** It is stopping. */
  leaving: Schema.optionalKey(Schema.Boolean)
})
export type WorkerState = typeof WorkerState.Type

/**
 * A worker process and the partitions whose leases it holds. At its last heartbeat, up to 2 s ago, it
 * was `delivering` in a partition, or was still taking it over or handing it on.
 */
export const WorkerView = Schema.Struct({
  ...WorkerState.fields,
  pid: Schema.optionalKey(Schema.Int),
  /** Partitions of its share that their owners do not hand over. */
  withheld: Heartbeat.fields.withheld,
  partitions: Schema.Array(
    Schema.Struct({
      partition: Schema.Int,
      delivering: Schema.Boolean,
      inFlight: Schema.Int,
      inMemory: Schema.Int
    })
  )
})
export type WorkerView = typeof WorkerView.Type

/** All workers, and the partitions that none of them owns. */
export const Workers = Schema.Struct({
  workers: Schema.Array(WorkerView),
  unowned: Schema.Array(Schema.Int)
})
export type Workers = typeof Workers.Type

/** Returns what a worker says of itself. */
export const workerState = (worker: string, heartbeat: Heartbeat | undefined): WorkerState =>
  heartbeat === undefined
    ? { worker, alive: false }
    : {
        worker,
        alive: true,
        host: heartbeat.host,
        startedAt: heartbeat.startedAt,
        roles: heartbeat.roles,
        leaving: heartbeat.leaving === true
      }

const viewOf = ({ heartbeat, id, partitions }: Present): WorkerView => ({
  ...workerState(id, heartbeat),
  ...(heartbeat === undefined ? {} : { pid: heartbeat.pid }),
  ...(heartbeat?.withheld === undefined ? {} : { withheld: heartbeat.withheld }),
  partitions: partitions.map((partition) => {
    const load = heartbeat?.partitions.find((load) => load.partition === partition)
    const { inFlight = 0, inMemory = 0 } = load ?? {}
    return { partition, delivering: load !== undefined, inFlight, inMemory }
  })
})

/** Lists the workers and their partitions. */
export const listWorkers = Effect.map(
  readPresent,
  ({ present, unowned }): Workers => ({ workers: present.map(viewOf), unowned })
)
