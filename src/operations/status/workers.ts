import { Effect, Schema } from "effect"
import type { Present } from "../../cluster/roster.ts"
import { Heartbeat, Role, readPresent } from "../../cluster/roster.ts"
import { Timestamp } from "../../domain/timestamp.ts"

/** A worker process. All but its name is absent if it has stopped. */
export const WorkerState = Schema.Struct({
  worker: Schema.String.annotateKey({ description: "The id of the worker." }),
  alive: Schema.Boolean.annotateKey({ description: "Whether its last heartbeat is recent." }),
  host: Schema.optionalKey(Schema.String).annotateKey({ description: "The host that it runs on." }),
  /** ms since the epoch. */
  startedAt: Schema.optionalKey(Timestamp).annotateKey({ description: "When it was started." }),
  roles: Schema.optionalKey(Schema.Array(Role)).annotateKey({ description: "What it does." }),
  leaving: Schema.optionalKey(Schema.Boolean).annotateKey({ description: "It is stopping." })
})
export type WorkerState = typeof WorkerState.Type

/**
 * A worker process and the partitions whose leases it holds. At its last heartbeat, up to 2 s ago, it
 * was `delivering` in a partition, or was still taking it over or handing it on.
 */
export const WorkerView = Schema.Struct({
  ...WorkerState.fields,
  pid: Schema.optionalKey(Schema.Int).annotateKey({ description: "The process id." }),
  withheld: Heartbeat.fields.withheld.annotateKey({
    description: "Partitions of its share that their owners do not hand over."
  }),
  partitions: Schema.Array(
    Schema.Struct({
      partition: Schema.Int.annotateKey({ description: "The index of the partition." }),
      delivering: Schema.Boolean.annotateKey({
        description:
          "Whether it delivers; if not, it is taking the partition over or handing it on."
      }),
      inFlight: Schema.Int.annotateKey({ description: "Requests that are under way." }),
      inMemory: Schema.Int.annotateKey({ description: "Deliveries in its memory." })
    })
  ).annotateKey({ description: "The partitions whose leases it holds." })
})
export type WorkerView = typeof WorkerView.Type

/** All workers, and the partitions that none of them owns. */
export const Workers = Schema.Struct({
  workers: Schema.Array(WorkerView).annotateKey({ description: "The workers." }),
  unowned: Schema.Array(Schema.Int).annotateKey({
    description: "The partitions that no worker owns."
  })
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
