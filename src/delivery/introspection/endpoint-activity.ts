import { Effect, Option } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readPartitions } from "../../broker/installed.ts"
import { readEntry } from "../../broker/values.ts"
import type { EndpointActivity } from "../../cluster/introspection.ts"
import { queryOwner } from "../../cluster/introspection.ts"
import { decodeLease, leaseKey } from "../../cluster/roster.ts"
import { type EndpointName, endpointKey } from "../../domain/endpoint.ts"
import { partitionOf } from "../../domain/names.ts"
import type { WaitingCounts } from "./waiting.ts"
import { countWaitingIn } from "./waiting.ts"

/** The current activity of an endpoint. */
export interface EndpointNow {
  readonly partition: number
  /** The worker that owns the partition; undefined where none does. */
  readonly owner: string | undefined
  /** The owner's answer; undefined where it does not answer. */
  readonly answer: OwnerAnswer | undefined
  readonly waiting: WaitingCounts
}

/** An owner's answer about an endpoint. */
interface OwnerAnswer extends Omit<EndpointActivity, "backlog" | "endpoint" | "tenant"> {
  /** Start of its count of the last hour, ms since the epoch. */
  readonly since: number
  /**
   * How far the owner's clock is ahead of the broker's, or behind it (negative), ms; undefined while
   * they agree.
   */
  readonly clockSkewMs?: number | undefined
}

/** Partitions that are queried at the same time. */
const maxConcurrentQueries = 8

const idle: Omit<EndpointActivity, "endpoint" | "tenant"> = {
  inFlight: 0,
  inLine: 0,
  attempts: 0,
  delivered: 0
}

/** Reads which worker owns a partition, whether it answers or not. */
const readOwner = Effect.fnUntraced(function* (partition: number) {
  const { names } = yield* Broker
  const { text = "" } = yield* readEntry(names.buckets.workers, leaseKey(partition))
  return Option.getOrUndefined(decodeLease(text))?.worker
})

const readPartition = Effect.fnUntraced(function* (
  partition: number,
  of: { readonly tenant?: string; readonly endpoint?: string }
) {
  const [answer, waiting] = yield* Effect.all(
    [
      queryOwner(partition, { about: "endpoints", ...of }),
      countWaitingIn(partition, of.tenant, of.endpoint)
    ],
    { concurrency: 2 }
  )
  const owner = answer?.worker ?? (yield* readOwner(partition))
  const active = new Map(
    answer?.endpoints.map(({ endpoint, tenant, ...rest }) => [endpointKey(tenant, endpoint), rest])
  )
  return (tenant: string, id: string): EndpointNow => {
    const { backlog, ...now } = active.get(endpointKey(tenant, id)) ?? idle
    const stored = waiting(tenant, id)
    return {
      partition,
      owner,
      answer: answer && { since: answer.since, clockSkewMs: answer.clockSkewMs, ...now },
      // A message stays until all its deliveries have ended; only its owner knows which have.
      waiting: { ...stored, backlog: backlog ?? stored.backlog }
    }
  }
})

/** Reads the current activity of one endpoint, whose partition is known. */
export const readEndpointIn = (partition: number, { id, tenant }: EndpointName) =>
  Effect.map(readPartition(partition, { tenant, endpoint: id }), (now) => now(tenant, id))

/** Reads the current activity of one endpoint. */
export const readEndpointNow = (tenant: string, id: string) =>
  Effect.flatMap(readPartitions, (partitions) =>
    readEndpointIn(partitionOf(tenant, id, partitions), { tenant, id })
  )

/** Reads the current activity of all endpoints, or of a tenant's. */
export const readAllNow = Effect.fnUntraced(function* (tenant?: string) {
  const partitions = yield* readPartitions
  const of = tenant === undefined ? {} : { tenant }
  const all = yield* Effect.forEach(
    Array.from({ length: partitions }, (_, partition) => partition),
    (partition) => readPartition(partition, of),
    { concurrency: maxConcurrentQueries }
  )
  return (tenant: string, id: string): EndpointNow | undefined =>
    all[partitionOf(tenant, id, partitions)]?.(tenant, id)
})
