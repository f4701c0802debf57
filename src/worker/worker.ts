import { Cause, Clock, Deferred, Effect, Fiber, Layer, Random, Semaphore } from "effect"
import type { IpNetwork } from "effect/net"
import { makePartitionAlerts } from "../alerts/partition-alerts.ts"
import { runSystemAlerts } from "../alerts/system-alerts.ts"
import { watchThresholds } from "../alerts/thresholds.ts"
import type { WorkerClock } from "../broker/clock-watch.ts"
import { watchClock } from "../broker/clock-watch.ts"
import { Broker } from "../broker/connection.ts"
import { makeGate } from "../broker/gate.ts"
import type { Layout } from "../broker/installed.ts"
import { readLayout, refuseChange } from "../broker/installed.ts"
import { untilAnswered } from "../broker/until-answered.ts"
import type { OwnedPartition } from "../cluster/assignment.ts"
import { maintainAssignment } from "../cluster/assignment.ts"
import { refuseNewLayout, watchPartitions } from "../cluster/layout-watch.ts"
import type { Membership, WorkerRefused } from "../cluster/membership.ts"
import { join } from "../cluster/membership.ts"
import { ownerFence } from "../cluster/owner-fence.ts"
import type { Owner } from "../cluster/ownership.ts"
import { defaultTtl } from "../cluster/ownership.ts"
import type { Role } from "../cluster/roster.ts"
import { Settlement } from "../delivery/execution/settlement.ts"
import { makeAgents } from "../delivery/http/egress.ts"
import type { AnswerLevel } from "../delivery/http/kept-answer.ts"
import type { Sender } from "../delivery/http/sender.ts"
import { AgentTransport } from "../delivery/http/transport.ts"
import { Partition } from "../delivery/partition.ts"
import { makeTakeovers } from "../delivery/recovery/takeovers.ts"
import { advanceWatermark } from "../delivery/recovery/watermark.ts"
import { makeDeadLetterGate } from "../delivery/retry/dead-letter-gate.ts"
import { CapacityPool, defaultLoad } from "../delivery/scheduling/capacity-pool.ts"
import { sweepUnavailable } from "../delivery/sweep/sweep-unavailable.ts"
import { wakeEnded } from "../delivery/sweep/wake-dead-letters.ts"
import { Directory } from "../endpoints/directory.ts"
import { Facts } from "../history/facts.ts"
import type { Reach } from "../policy/address.ts"
import { runRouter } from "../routing/router.ts"

export type { Role } from "../cluster/roster.ts"

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
  /** How long a stop waits for requests in flight, ms. (Default: 30 s) */
  readonly stopWithin?: number | undefined
  /** Maximum number of requests in flight, whatever the endpoints' own limits. (Default: 1,024) */
  readonly maxInFlight?: number | undefined
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
  /** Pause between searches of owners for unknown backlogs, ms. (Default: 1 min) */
  readonly findEvery?: number | undefined
  /**
   * Maximum number of deliveries in a partition that wait by NAK; beyond it, schedules are used.
   * (Default: 20,000)
   */
  readonly maxWaiting?: number | undefined
  /**
   * How long nobody delivers in the partitions of a worker that has died, ms; must be the same for
   * all workers. (Default: 10 s)
   */
  readonly leaseTtl?: number | undefined
}

/** A running worker that has joined the cluster. */
export interface Worker {
  /**
   * Stops gracefully: pulls no more, finishes requests in flight, and releases the rest. Work that
   * is not finished in time is cancelled; the next owner receives its messages again.
   */
  readonly stop: Effect.Effect<void>
  /**
   * Waits until the worker delivers in all partitions that are assigned to it, and returns these:
   * none if there are more workers than partitions.
   */
  readonly delivering: Effect.Effect<ReadonlyArray<number>>
  /** Fails when the worker has stopped because it could not continue. */
  readonly refused: Effect.Effect<never, WorkerRefused>
}

const defaultStopWithin = 30_000
const defaultAlertEvery = 5_000
/** Pause before a failed part of a worker is restarted, ms. */
const retryPauseMs = 1_000

/** Reads the layout and the endpoints, and joins the cluster. */
const enter = Effect.fnUntraced(function* (
  owner: Owner,
  roles: ReadonlyArray<Role>,
  load: ReturnType<typeof loadOf>
) {
  const { epoch } = yield* refuseChange
  const layout = yield* readLayout
  const mayReturn = refuseNewLayout(epoch)
  // Before the first heartbeat: while 100,000 endpoints are read, the next ones may come too late.
  const services = yield* Layer.build(Layer.mergeAll(Directory.layer, Facts.layer))
  const workerClock = yield* watchClock
  const membership = yield* join({ owner, roles, load, mayReturn })
  // Whoever changes the layout announces that and then looks for workers: one of the two sees the
  // other.
  yield* mayReturn
  return { epoch, layout, membership, services, workerClock }
})

/**
 * Starts a worker, which runs until it is stopped, cannot continue, or the scope closes. Fails if a
 * live worker has its id.
 */
export const startWorker = Effect.fnUntraced(function* (options: WorkerOptions) {
  const owner: Owner = {
    worker: options.id,
    instance: (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36),
    ttl: options.leaseTtl ?? defaultTtl
  }
  const owned = new Map<number, Partition>()
  let requests = 0
  const { epoch, layout, membership, services, workerClock } = yield* untilAnswered(
    "the broker does not answer, as while a cluster elects its leaders; waiting until it does",
    "the broker answers; going on",
    enter(owner, options.roles, loadOf(owned))
  )
  const asked = yield* Deferred.make<void>()
  const delivering = yield* Deferred.make<ReadonlyArray<number>>()
  const node: Node = {
    options,
    layout,
    owner,
    owned,
    nextId: () => `${owner.instance}.${requests++}`,
    membership,
    workerClock,
    stopping: () => Deferred.isDoneUnsafe(asked),
    stopAsked: Deferred.await(asked),
    settled: (partitions) => Deferred.succeed(delivering, partitions)
  }
  const parts = [
    ...(options.roles.includes("router") ? [keepUp("route", node, route(node))] : []),
    ...(options.roles.includes("deliver") ? [keepUp("deliver", node, deliverShare(node))] : [])
  ]
  const fibers = yield* Effect.forEach(parts, (part) =>
    Effect.forkScoped(Effect.provideContext(part, services))
  )
  const within = options.stopWithin ?? defaultStopWithin
  const { connection } = yield* Broker
  // Without a connection, results could not be recorded.
  const cancelled = Effect.andThen(
    Effect.promise(() => connection.closed()),
    Fiber.interruptAll(fibers)
  )
  const stop = Effect.gen(function* () {
    yield* Deferred.succeed(asked, undefined)
    yield* Effect.forkChild(membership.leave, { startImmediately: true })
    yield* Effect.forEach(fibers, Fiber.await, { concurrency: "unbounded" }).pipe(
      Effect.raceFirst(cancelled),
      Effect.timeoutOrElse({
        duration: within,
        orElse: () =>
          Effect.andThen(
            Effect.logWarning("what was under way was cut off", { after: within }),
            Fiber.interruptAll(fibers)
          )
      })
    )
    yield* membership.end
  })
  yield* Effect.addFinalizer(() => stop)
  const refused = yield* Deferred.make<never, WorkerRefused>()
  yield* Effect.raceFirst(membership.replaced, watchPartitions(layout.partitions, epoch)).pipe(
    Effect.catch((error) => Effect.andThen(stop, Deferred.fail(refused, error))),
    Effect.forkScoped
  )
  return {
    stop,
    delivering: Deferred.await(delivering),
    refused: Deferred.await(refused)
  } satisfies Worker
})

interface Node {
  readonly options: WorkerOptions
  readonly layout: Layout
  readonly owner: Owner
  /** Returns a new id for each request that is made. */
  readonly nextId: () => string
  /** Partitions in which the worker delivers now. */
  readonly owned: Map<number, Partition>
  readonly membership: Membership
  readonly workerClock: WorkerClock
  readonly stopping: () => boolean
  readonly stopAsked: Effect.Effect<void>
  readonly settled: (partitions: ReadonlyArray<number>) => Effect.Effect<unknown>
}

const loadOf = (owned: ReadonlyMap<number, Partition>) =>
  Effect.suspend(() =>
    Effect.forEach(owned, ([partition, { load }]) =>
      Effect.map(load, (load) => ({ partition, ...load }))
    )
  )

/**
 * Runs a part of the worker until the worker stops: again when it ends, and after a pause when it
 * fails.
 */
const keepUp = <E, R>(what: string, node: Node, part: Effect.Effect<void, E, R>) => {
  const once = Effect.scoped(part).pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        Effect.andThen(
          Effect.logError(`cannot ${what}; trying again`, cause),
          Effect.raceFirst(Effect.sleep(retryPauseMs), node.stopAsked)
        )
    )
  )
  return Effect.whileLoop({
    while: () => !node.stopping(),
    body: () => once,
    step: () => undefined
  })
}

/**
 * Routes events. Deliveries for the worker's own partitions may be attempted directly, or stored in
 * the backlog at once.
 */
const route = ({ layout, options, owned, stopping, workerClock }: Node) =>
  runRouter({
    worker: options.id,
    layout,
    bytesInHand: Math.floor((options.maxBytes ?? defaultLoad.maxBytes) / 8),
    directBytes: Math.floor((options.maxBytes ?? defaultLoad.maxBytes) / 8),
    stopping,
    isClockTrusted: workerClock.isTrusted,
    owned: {
      attempt: (partition, direct) => owned.get(partition)?.takeDirect(direct) === true,
      storeInBacklog: (partition, kept) => owned.get(partition)?.storeInBacklog(kept) === true
    }
  })

/** Delivers in the partitions that are assigned to this worker. */
const deliverShare = Effect.fnUntraced(function* (node: Node) {
  const { layout, options, owned } = node
  const agentOf = yield* makeAgents({
    everyone: { networks: options.allowNetworks, ports: options.allowPorts ?? [] },
    tenants: options.tenantReach ?? new Map(),
    receiverCa: options.receiverCa
  })
  const sender: Sender = {
    transport: new AgentTransport(agentOf),
    clock: yield* Clock.Clock,
    answers: options.answers ?? (() => "body")
  }
  const { maxBytes = defaultLoad.maxBytes, maxInFlight = defaultLoad.maxInFlight } = options
  const pool = new CapacityPool({ requests: maxInFlight, bytes: maxBytes / 2 })
  const rest = { until: 0 }
  const { history, historyPosition, takeOver } = yield* makeTakeovers(layout.partitions)
  const sweeps = yield* Semaphore.make(1)
  const records = makeGate(
    "the broker takes no retry records: nothing new is sent until it does",
    "the broker takes retry records again"
  )
  const deadLetters = yield* makeDeadLetterGate

  const { alertEvery = defaultAlertEvery } = options
  const systemAlertsEvery = 3 * alertEvery
  const judge = {
    partitions: layout.partitions,
    worker: options.id,
    clock: sender.clock,
    nextId: node.nextId,
    dedupe: layout.moveDedupe,
    every: alertEvery,
    thresholds: yield* watchThresholds(systemAlertsEvery)
  }

  const deliver = Effect.fnUntraced(function* (holding: OwnedPartition, begun: () => void) {
    const { holds, partition: index } = holding.ownership
    const taken = yield* Effect.raceFirst(takeOver(index), Effect.as(holding.over, undefined))
    if (taken === undefined) return
    const fence = ownerFence(holding.ownership)
    const alerts = yield* makePartitionAlerts({ ...judge, index, holds })
    const partition = yield* Partition.make({
      ...taken,
      history,
      nextId: node.nextId,
      settle: (memory, maxWaiting = options.maxWaiting) =>
        Settlement.make({
          worker: options.id,
          layout,
          memory,
          records,
          deadLetters,
          fence,
          nextId: node.nextId,
          onDeadLettered: alerts.onDeadLettered,
          maxWaiting
        }),
      sender,
      alerts,
      pool,
      rest,
      bytesInHand: Math.floor(maxBytes / 4 / layout.partitions),
      worker: options.id,
      ackWait: layout.ackWait,
      maxBacklog: options.maxBacklog,
      findEvery: options.findEvery,
      fence,
      workerClock: node.workerClock,
      stopping: holding.isOver
    })
    yield* Effect.acquireRelease(
      Effect.sync(() => owned.set(index, partition)),
      () => Effect.sync(() => owned.delete(index))
    )
    yield* Effect.forkScoped(sweepUnavailable(partition, layout.partitions, sweeps))
    yield* Effect.forkScoped(wakeEnded(index, deadLetters))
    yield* Effect.forkScoped(
      advanceWatermark(partition, taken.memory, historyPosition, holds, layout.ackWait)
    )
    yield* partition.prepare
    // System alerts need a single evaluator: the owner of partition 0.
    if (index === 0) yield* runSystemAlerts({ ...judge, every: systemAlertsEvery, holds })
    begun()
    yield* partition.deliverAll
  }, Effect.scoped)

  yield* maintainAssignment({
    owner: node.owner,
    partitions: layout.partitions,
    membership: node.membership,
    stopping: node.stopping,
    stopAsked: node.stopAsked,
    deliver,
    settled: (partitions) =>
      Effect.andThen(
        Effect.logInfo("delivers", { partitions, of: layout.partitions }),
        node.settled(partitions)
      )
  })
})
