import { Effect, FiberSet, LogLevel } from "effect"
import type { PartitionAlerts } from "../alerts/endpoint-alerts.ts"
import { Broker } from "../broker/broker.ts"
import type { WorkerClock } from "../broker/clock-watch.ts"
import { Failpoint } from "../broker/failpoint.ts"
import { makeInFlight } from "../broker/in-flight.ts"
import type { OwnerFence } from "../cluster/ownership.ts"
import { Directory } from "../endpoints/directory.ts"
import { makeEndpointHealth } from "../endpoints/endpoint-health.ts"
import type { StoredHealth } from "../endpoints/health-store.ts"
import type { HostLimits } from "../endpoints/host-limits.ts"
import { Facts } from "../history/facts.ts"
import { Metrics } from "../metrics/worker-metrics.ts"
import { eventOutlasts } from "../policy/event-outlasts.ts"
import type { SpreadTimes } from "../policy/spread-times.ts"
import { Backlog } from "./backlog/backlog.ts"
import { BacklogIndex } from "./backlog/backlog-index.ts"
import type { BacklogSpace } from "./backlog/backlog-space.ts"
import type { DutyCycle } from "./backlog/expiry.ts"
import type { EventBodies } from "./bodies/event-bodies.ts"
import type { LeftBodies } from "./bodies/left-bodies.ts"
import type { Settlement } from "./execution/settlement.ts"
import type { Connections } from "./http/egress.ts"
import type { Sender } from "./http/sender.ts"
import type { PartitionMemory, StreamMemory } from "./recovery/partition-memory.ts"
import type { HistoryEnd } from "./recovery/takeovers.ts"
import { watchForTruncation } from "./recovery/takeovers.ts"
import type { QueueSpace } from "./retry/queue-space.ts"
import type { CapacityPool } from "./scheduling/capacity-pool.ts"

/** Maximum messages of one endpoint's backlog. */
const maxBacklogMessages = 1_000_000

export interface PartitionOptions {
  readonly memory: PartitionMemory
  /** What the worker knows of the end of the history. */
  readonly history: HistoryEnd
  /** Health of its endpoints that are not healthy, as former owners stored it. */
  readonly health: ReadonlyArray<StoredHealth>
  /** Makes an id for each request that is sent, and for each fact about an endpoint. */
  readonly nextId: () => string
  /**
   * Makes the settlement of one stream's messages.
   *
   * @param maxWaiting number of deliveries that may wait by NAK; above it, schedules are used.
   */
  readonly settle: (
    memory: StreamMemory,
    maxWaiting?: number
  ) => Effect.Effect<Settlement, never, Broker | Facts>
  readonly sender: Sender
  /** Tries to connect to a host under the rules of requests, and sends no request. */
  readonly checkConnection: Connections["check"]
  /** Input of the alerts about its endpoints. */
  readonly alerts: PartitionAlerts
  /** The worker's capacity for requests, shared by its partitions. */
  readonly pool: CapacityPool
  /** The caps of hosts, for all partitions of the worker. */
  readonly hosts: HostLimits
  /** When endpoints that take nothing are tried again, for all partitions of the worker. */
  readonly spreadTimes: SpreadTimes
  /** What endpoints may let wait in backlogs, and in queues. Shared by the worker's partitions. */
  readonly backlogSpace: BacklogSpace
  readonly queueSpace: Pick<QueueSpace, "came" | "isFull" | "willCome">
  /** Limits the time that the searches of all the worker's backlogs take. */
  readonly dutyCycle: DutyCycle
  /** Reads events whose deliveries wait without a body. Shared by the worker's partitions. */
  readonly bodies: EventBodies
  /** The bodies of deliveries whose messages do not hold them. Shared by the worker's partitions. */
  readonly leftBodies: LeftBodies
  /** Returns how long events are kept, ms: infinite for ever, undefined while it is unknown. */
  readonly eventAge: () => number | undefined
  /** Maximum bytes of bodies of its queue's messages. */
  readonly maxPrefetchBytes: number
  readonly worker: string
  /** ack_wait of the queue's consumer, ms. */
  readonly ackWait: number
  /** Maximum messages of one endpoint's backlog. (Default: 1,000,000) */
  readonly maxBacklog?: number | undefined
  /**
   * Interval of the search for messages that a former owner stored in a backlog late, ms. (Default:
   * 1 min)
   */
  readonly findEvery?: number | undefined
  /** What is known of this worker's clock. Nothing is sent or ended by a wrong one. */
  readonly workerClock: WorkerClock
  /** Stops a former owner. */
  readonly fence: OwnerFence
  readonly stopping: () => boolean
  /** How long a release waits for requests in flight, ms: nothing is sent in the partition then. */
  readonly releaseWithin: number
  /** True where another worker waits for what is remembered at its end. */
  readonly isAskedFor: () => boolean
}

/**
 * What a partition does:
 *
 *     starting → delivering → over
 *        └────────────────────↑
 *
 * Starting: its memory is read, and what waits in backlogs is found. It takes nothing.
 * Over: nothing may begin any more. Its scope closes, its memory is wrong, or it passes on.
 */
export class PartitionLife {
  #mode: "starting" | "delivering" | "over" = "starting"

  get isDelivering(): boolean {
    return this.#mode === "delivering"
  }

  get isOver(): boolean {
    return this.#mode === "over"
  }

  /** Begins to deliver. Dies where it delivers already, or is over. */
  readonly deliver = Effect.suspend(() => {
    if (this.#mode !== "starting")
      return Effect.die(new Error(`a partition that is ${this.#mode} cannot begin to deliver`))
    this.#mode = "delivering"
    return Effect.void
  })

  end(): void {
    this.#mode = "over"
  }
}

/**
 * Acquires what a partition needs of its services. As their scope closes, nothing begins any
 * more, and what is in flight is cancelled.
 */
export const acquirePartitionServices = Effect.fnUntraced(function* (options: PartitionOptions) {
  const { backlogSpace, fence, memory, sender, worker } = options
  const life = new PartitionLife()
  const stopping = () => life.isOver || options.stopping()
  const broker = yield* Broker
  const backlog = yield* Backlog.make(memory.index)
  const inFlight = yield* makeInFlight<Broker | Facts>()
  // Runs before work in flight is cancelled: nothing may take its place.
  yield* Effect.addFinalizer(() => Effect.sync(() => life.end()))
  const background = yield* FiberSet.make<void>()
  const healthFacts = yield* FiberSet.make<void>()
  const health = yield* makeEndpointHealth({
    worker,
    clock: sender.clock,
    nextId: options.nextId,
    isClockTrusted: options.workerClock.isTrusted,
    holds: fence.holds,
    isOver: stopping,
    hosts: options.hosts,
    spreadTimes: options.spreadTimes,
    run: yield* FiberSet.runtime(healthFacts)<Broker | Facts>()
  })
  yield* options.alerts.watch(health.of)
  const index = new BacklogIndex(options.maxBacklog ?? maxBacklogMessages, (key, delivery) =>
    backlogSpace.isFull(
      key,
      delivery.leftBytes !== undefined || eventOutlasts(delivery, options.eventAge())
    )
  )
  return {
    life,
    stopping,
    mayAttempt: () => fence.holds() && options.workerClock.wasTrusted(),
    broker,
    names: broker.names,
    backlog,
    inFlight,
    runInBackground: yield* FiberSet.runtime(background)(),
    healthFacts,
    health,
    index,
    tail: yield* watchForTruncation(memory.backlog.stream, () => index.highest()),
    queueSettlement: yield* options.settle(memory),
    // What fails there waits as a schedule, so that the backlog proceeds.
    backlogSettlement: yield* options.settle(memory.backlog, 0),
    directory: yield* Directory,
    facts: yield* Facts,
    metrics: yield* Metrics,
    reached: yield* Failpoint,
    logsDeliveries: yield* LogLevel.isEnabled("Debug")
  }
})

export type PartitionServices = Effect.Success<ReturnType<typeof acquirePartitionServices>>
