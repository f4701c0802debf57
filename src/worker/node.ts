import type { Effect } from "effect"
import type { IpNetwork } from "effect/net"
import type { WorkerClock } from "../broker/clock-watch.ts"
import { makeGate } from "../broker/gate.ts"
import type { Layout } from "../broker/installed.ts"
import type { WithheldPartitions } from "../cluster/hand-over.ts"
import type { Membership } from "../cluster/membership.ts"
import type { Owner } from "../cluster/ownership.ts"
import type { Role } from "../cluster/roster.ts"
import type { makeConnections } from "../delivery/http/egress.ts"
import type { AnswerLevel } from "../delivery/http/kept-answer.ts"
import type { Partition } from "../delivery/partition.ts"
import type { WorkerMetrics } from "../metrics/worker-metrics.ts"
import type { Reach } from "../policy/address.ts"

/** Default of {@link WorkerOptions.stopWithin}, ms. */
export const defaultStopWithin = 30_000

export interface WorkerOptions {
  /** Id of the worker in facts, logs and leases. No other live worker may have it. */
  readonly id: string
  readonly roles: ReadonlyArray<Role>
  /**
   * Networks that requests may go to, at any port, even if they are private, loopback or this
   * host's own.
   */
  readonly allowNetworks: ReadonlyArray<IpNetwork.IpNetwork>
  /** Ports of public addresses that are allowed besides 443 and 80. (Default: none) */
  readonly allowPorts?: Reach["ports"] | undefined
  /** Additional networks and ports per tenant. (Default: none) */
  readonly tenantReach?: ReadonlyMap<string, Reach> | undefined
  /**
   * Certificate authorities (PEM) for receivers, besides those that come with Node. (Default: none)
   */
  readonly receiverCa?: string | undefined
  /** How much of an answer is kept, by tenant. (Default: body, all that is read) */
  readonly answers?: ((tenant: string) => AnswerLevel) | undefined
  /**
   * True where receivers of a sampled trace get the attempt's span as its parent. (Default: false,
   * they get the publisher's)
   */
  readonly traces?: boolean | undefined
  /**
   * How long a stop, or the release of a partition to another worker, waits for requests in flight,
   * ms. (Default: 30 s)
   */
  readonly stopWithin?: number | undefined
  /** Maximum number of requests in flight, whatever the endpoints' own limits. (Default: 1,024) */
  readonly maxInFlight?: number | undefined
  /**
   * Maximum number of open connections to receivers, those of requests in flight included.
   * (Default: four for each request that may be in flight)
   */
  readonly maxConnections?: number | undefined
  /**
   * Maximum size of bodies in memory, bytes: an eighth for routing, an eighth for direct delivery,
   * a quarter for messages pulled from the queues, and half for bodies read from backlogs and slow
   * deliveries. (Default: 128 MiB)
   */
  readonly maxBytes?: number | undefined
  /** Maximum number of messages in one endpoint's backlog. (Default: 1,000,000) */
  readonly maxBacklog?: number | undefined
  /**
   * Pause between evaluations of endpoint alerts, ms; alerts about tenants and the system are
   * evaluated a third as often. (Default: 5 s)
   */
  readonly alertEvery?: number | undefined
  /**
   * Pause between searches of owners for unknown backlogs, and for rounds that a process left in
   * the middle, ms. (Default: 1 min)
   */
  readonly findEvery?: number | undefined
  /**
   * Maximum number of deliveries in a partition that wait by NAK; beyond it, schedules are used.
   * (Default: 20,000)
   */
  readonly maxWaiting?: number | undefined
  /** Bodies of this size or more are left in their event by retries, bytes. (Default: 32 KiB) */
  readonly leastLeftBytes?: number | undefined
  /**
   * How long nobody delivers in the partitions of a worker that has died, ms; must be the same for
   * all workers. (Default: 10 s)
   */
  readonly leaseTtl?: number | undefined
  /** Makes the connections to receivers. (Default: guarded ones, over TCP and TLS) */
  readonly makeConnections?: typeof makeConnections | undefined
  /** Called once the endpoints are read, before others know of the worker. (Default: nothing) */
  readonly beforeJoining?: (() => void) | undefined
  /** What it counts in. (Default: counts that nobody reads) */
  readonly metrics?: WorkerMetrics | undefined
}

/**
 * Makes what guards the publishes of a worker, except facts. It outlives a part that fails, because
 * the worker says what does not get through.
 */
export const makeGates = () => ({
  records: makeGate(
    "the broker takes no retry records: nothing new is sent until it does",
    "the broker takes retry records again"
  ),
  deliveries: makeGate(
    "the broker takes no deliveries: events wait until it does",
    "the broker takes deliveries again"
  ),
  origins: makeGate(
    "the broker takes no origins of events: events wait until it does",
    "the broker takes origins of events again"
  )
})

/** What the parts of a worker share. */
export interface Node {
  readonly options: WorkerOptions
  readonly layout: Layout
  readonly owner: Owner
  readonly gates: ReturnType<typeof makeGates>
  /** Returns a new id for each request that is made. */
  readonly nextId: () => string
  /** Partitions in which the worker delivers now. */
  readonly owned: Map<number, Partition>
  readonly membership: Membership
  readonly withheld: WithheldPartitions
  readonly workerClock: WorkerClock
  readonly stopping: () => boolean
  readonly stopAsked: Effect.Effect<void>
  /** Called when the worker delivers in all partitions that are assigned to it. */
  readonly delivers: (partitions: ReadonlyArray<number>) => Effect.Effect<unknown>
}
