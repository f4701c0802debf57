import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { orSayMissing, readPartitions } from "../../broker/installed.ts"
import { readBatch } from "../../broker/scan.ts"
import { deliverySubject } from "../../domain/delivery.ts"
import { endpointKey, endpointKeyIn } from "../../domain/endpoint.ts"
import { partitionOf } from "../../domain/names.ts"
import { countBacklogs } from "../../history/backlog-count.ts"

/** The number of deliveries that wait for an endpoint. */
export interface WaitingCounts {
  /**
   * Not delivered by the broker yet, in the owner's memory, or waiting for a retry; those in flight
   * included.
   */
  readonly queue: number
  /** Retries that wait as broker schedules; undefined where there are too many to read. */
  readonly schedules: number | undefined
  readonly backlog: number
}

/** Maximum remaining schedules of a partition that are read. */
const maxSchedulesRead = 5_000
const batch = { batch: 500, max_bytes: 4 * 1024 * 1024 }

const countBySubject = Effect.fnUntraced(function* (stream: string, subject: string) {
  const { streamInfo } = yield* Broker
  const { state } = yield* streamInfo(`count what waits in ${stream}`, stream, {
    subjects_filter: subject
  })
  return new Map(
    Object.entries(state.subjects ?? {}).map(([at, count]) => [endpointKeyIn(at), count])
  )
})

/** Only its headers tell to which endpoint a schedule belongs. */
const countSchedules = Effect.fnUntraced(function* (partition: number) {
  const { names } = yield* Broker
  const counts = new Map<string, number>()
  const subject = names.subjects.schedulesOf(partition)
  let seq = 1
  while (true) {
    const messages = yield* readBatch(names.deliveries(partition), subject, seq, batch)
    for (const message of messages) {
      const key = endpointKeyIn(deliverySubject(message))
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
    const last = messages.at(-1)
    const left = Number(last?.header.get("Nats-Num-Pending") ?? 0)
    if (last === undefined || left === 0) return counts
    if (left > maxSchedulesRead) return undefined
    seq = last.seq + 1
  }
})

/**
 * Counts what waits in a partition. Asks the leaders.
 *
 * @param tenant count only this tenant's. (Default: all)
 * @param id count only this endpoint of the tenant. (Default: all)
 * @returns a function from tenant and endpoint id to the counts.
 */
export const countWaitingIn = Effect.fnUntraced(function* (
  partition: number,
  tenant = "*",
  id = "*"
) {
  const { names } = yield* Broker
  const { subjects } = names
  const [queue, backlog, schedules] = yield* Effect.all(
    [
      countBySubject(names.deliveries(partition), subjects.delivery(partition, tenant, id)),
      countBacklogs(partition, tenant, id),
      countSchedules(partition)
    ],
    { concurrency: "unbounded" }
  )
  return (tenant: string, id: string): WaitingCounts => {
    const key = endpointKey(tenant, id)
    return {
      queue: queue.get(key) ?? 0,
      schedules: schedules === undefined ? undefined : (schedules.get(key) ?? 0),
      backlog: backlog.get(key) ?? 0
    }
  }
}, orSayMissing)

/** Counts what waits for an endpoint. Asks the leaders. */
export const countWaiting = Effect.fnUntraced(function* (tenant: string, id: string) {
  const partitions = yield* readPartitions
  const partition = partitionOf(tenant, id, partitions)
  return (yield* countWaitingIn(partition, tenant, id))(tenant, id)
})

/** Streams that are counted at once: each answer names all endpoints that have something there. */
const countedAtOnce = 4

/** Counts what waits in the backlogs of all partitions by tenant, in messages. */
export const countByTenant = Effect.fnUntraced(function* (partitions: ReadonlyArray<number>) {
  const { names, streamInfo } = yield* Broker
  const byTenant = new Map<string, number>()
  const countIn = Effect.fnUntraced(function* (index: number) {
    const stream = names.backlog(index)
    const { state } = yield* streamInfo(`count what waits in ${stream}`, stream, {
      subjects_filter: names.subjects.backlogOf(index)
    })
    for (const [subject, count] of Object.entries(state.subjects ?? {})) {
      const tenant = subject.split(".").at(-2) ?? ""
      byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + count)
    }
  })
  yield* Effect.forEach(partitions, countIn, { concurrency: countedAtOnce, discard: true })
  return byTenant
})
