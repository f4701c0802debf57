import { Clock, Effect, Semaphore } from "effect"
import { makePartitionAlerts } from "../alerts/endpoint-alerts.ts"
import { runSystemAlerts } from "../alerts/system-alerts.ts"
import { watchThresholds } from "../alerts/thresholds.ts"
import { Broker } from "../broker/broker.ts"
import { watchSources } from "../broker/sources/watch.ts"
import { maintainAssignment } from "../cluster/assignment.ts"
import type { OwnedPartition } from "../cluster/ownership.ts"
import { ownerFence } from "../cluster/ownership.ts"
import { makeBacklogSpace } from "../delivery/backlog/backlog-space.ts"
import { EventBodies } from "../delivery/bodies/event-bodies.ts"
import { LeftBodies, watchEventAge } from "../delivery/bodies/left-bodies.ts"
import { Settlement } from "../delivery/execution/settlement.ts"
import { AgentTransport, makeConnections, OpenConnections } from "../delivery/http/egress.ts"
import type { Sender } from "../delivery/http/sender.ts"
import { Partition } from "../delivery/partition.ts"
import type { PartitionOptions } from "../delivery/partition-services.ts"
import { makeTakeovers, StreamTruncated } from "../delivery/recovery/takeovers.ts"
import { advanceWatermark } from "../delivery/recovery/watermark.ts"
import { AwaitingSpace, DeadLetterGate } from "../delivery/retry/dead-letter-gate.ts"
import { QueueSpace } from "../delivery/retry/queue-space.ts"
import { CapacityPool, defaultLoad } from "../delivery/scheduling/capacity-pool.ts"
import { sweepUnavailable } from "../delivery/sweep/sweep.ts"
import { wakeEnded } from "../delivery/sweep/wake-dead-letters.ts"
import { Directory } from "../endpoints/directory.ts"
import { hostOf } from "../endpoints/host-index.ts"
import { HostLimits } from "../endpoints/host-limits.ts"
import { keepIntakeSpace } from "../intake/trim-intake.ts"
import { Metrics } from "../metrics/worker-metrics.ts"
import { loadWithin } from "../policy/open-files.ts"
import { SpreadTimes } from "../policy/spread-times.ts"
import { keepFinishing } from "../rounds/finish-abandoned.ts"
import { keepBypass } from "../routing/bypass-keeper.ts"
import { runEventExpiry } from "../routing/event-expiry.ts"
import { timers } from "../time/timers.ts"
import type { Node } from "./node.ts"
import { defaultStopWithin } from "./node.ts"

const defaultAlertEvery = 5_000
/** System alerts are evaluated this many times less often than those of endpoints. */
const systemAlertsFactor = 3
/** Interval at which rounds are looked for that a process has left in the middle, ms. */
const finishEvery = 60_000
/** Interval at which grown shares of hosts' caps are given to lanes that wait, ms. */
const hostTickMs = 100

/** Makes what signs and sends the requests of a worker, and what tries a connection. */
const makeSender = Effect.fnUntraced(function* ({ options }: Node) {
  const directory = yield* Directory
  const { maxInFlight = defaultLoad.maxInFlight } = options
  const { maxConnections = loadWithin(maxInFlight).maxConnections } = options
  const connections = new OpenConnections(maxConnections, () => directory.tenantCount() > 1)
  const { agentOf, check } = yield* (options.makeConnections ?? makeConnections)({
    everyone: { networks: options.allowNetworks, ports: options.allowPorts ?? [] },
    tenants: options.tenantReach ?? new Map(),
    receiverCa: options.receiverCa,
    onOpened: connections.opened
  })
  const sender: Sender = {
    transport: new AgentTransport(agentOf, connections.mayKeep),
    clock: yield* Clock.Clock,
    answers: options.answers ?? (() => "body"),
    traces: options.traces ?? false
  }
  return { sender, checkConnection: check, connections }
})

/** Makes the caps of hosts, which are followed until the scope closes. */
const makeHostLimits = Effect.gen(function* () {
  const hosts = new HostLimits((yield* Directory).hosts)
  yield* Effect.acquireRelease(
    Effect.sync(() => timers.every(hostTickMs, () => hosts.tick())),
    (timer) => Effect.sync(() => timers.cancel(timer))
  )
  return hosts
})

/** Acquires what the partitions of a worker share. */
const acquireShared = Effect.fnUntraced(function* (node: Node) {
  const { layout, options } = node
  const { checkConnection, connections, sender } = yield* makeSender(node)
  const { maxBytes = defaultLoad.maxBytes, maxInFlight = defaultLoad.maxInFlight } = options
  const { alertEvery = defaultAlertEvery } = options
  const directory = yield* Directory
  const limits = { requests: maxInFlight, bytes: maxBytes / 2 }
  const pool = new CapacityPool(limits, () => directory.tenantCount() > 1)
  const metrics = yield* Metrics
  const bodies = yield* EventBodies.make()
  const eventAge = yield* watchEventAge
  metrics.load = () => ({
    requests: pool.requests.inFlight,
    slowRequests: pool.requests.slow,
    maxRequests: pool.requests.max,
    byTenant: () => pool.loads(),
    partitions: node.owned.size,
    connections: connections.size,
    byHost: () => {
      const hosts = new Map<string, number>()
      for (const partition of node.owned.values())
        partition.eachInFlight((url, requests) => {
          const host = hostOf(url)
          hosts.set(host, (hosts.get(host) ?? 0) + requests)
        })
      return hosts
    }
  })
  return {
    sender,
    checkConnection,
    hosts: yield* makeHostLimits,
    spreadTimes: new SpreadTimes(),
    pool,
    dutyCycle: { until: 0 },
    bodies,
    eventAge,
    leftBodies: new LeftBodies({ bodies, eventAge, least: options.leastLeftBytes }),
    maxPrefetchBytes: Math.floor(maxBytes / 4 / layout.partitions),
    takeovers: yield* makeTakeovers(layout),
    sweeps: yield* Semaphore.make(1),
    records: node.gates.records,
    deadLetters: yield* DeadLetterGate.make,
    backlogSpace: yield* makeBacklogSpace(layout.partitions, () => directory.tenantCount() > 1),
    queueSpace: yield* QueueSpace.make(layout.partitions),
    alerts: {
      partitions: layout.partitions,
      worker: options.id,
      clock: sender.clock,
      nextId: node.nextId,
      dedupe: layout.moveDedupe,
      every: alertEvery,
      thresholds: yield* watchThresholds(systemAlertsFactor * alertEvery)
    }
  }
})

const readBeforeABreak = new StreamTruncated({
  message:
    "the connection to the broker broke while a partition was taken over: what was read before it may be lost, and is read again"
})

/** Runs the partitions of which a worker is the owner. */
class PartitionRunner {
  readonly #node: Node
  readonly #shared: Effect.Success<ReturnType<typeof acquireShared>>

  constructor(node: Node, shared: Effect.Success<ReturnType<typeof acquireShared>>) {
    this.#node = node
    this.#shared = shared
  }

  /**
   * Takes a partition over, and delivers in it until its ownership is over. Returns what the next
   * owner must know, where it has asked for the partition and need not read the history.
   *
   * @param begun called when it delivers.
   * @param memory what the owner before has handed over.
   */
  readonly deliver = (owned: OwnedPartition, begun: () => void, memory: Uint8Array | undefined) =>
    Effect.map(Effect.scoped(this.#deliver(owned, begun, memory)), (partition) =>
      owned.isAskedFor() ? partition?.final.packed : undefined
    )

  readonly #deliver = Effect.fnUntraced(
    { self: this },
    function* (owned: OwnedPartition, begun: () => void, memory: Uint8Array | undefined) {
      const { layout, owned: partitions } = this.#node
      const { deadLetters, sweeps, takeovers } = this.#shared
      const { holds, partition: index } = owned.ownership
      const { life } = yield* Broker
      const readOn = life() ?? {}
      const taken = yield* Effect.raceFirst(
        takeovers.takeOver(index, memory),
        Effect.as(owned.over, undefined)
      )
      if (taken === undefined) return undefined
      const awaiting = new AwaitingSpace()
      const partition = yield* this.#makePartition(owned, taken, awaiting)
      yield* Effect.acquireRelease(
        Effect.sync(() => partitions.set(index, partition)),
        () => Effect.sync(() => partitions.delete(index))
      )
      yield* Effect.forkScoped(sweepUnavailable(partition, layout.partitions, sweeps))
      yield* Effect.forkScoped(wakeEnded(index, awaiting, deadLetters))
      const { historyPosition } = takeovers
      yield* Effect.forkScoped(
        advanceWatermark(partition, taken.memory, historyPosition, holds, layout.ackWait)
      )
      yield* partition.prepare
      // From now on it is watched whether streams are truncated.
      if (life() !== readOn) return yield* readBeforeABreak
      if (index === 0) yield* this.#beSole(holds)
      begun()
      yield* partition.deliverAll
      return partition
    }
  )

  /** Does what one worker of all does: the owner of partition 0. */
  readonly #beSole = Effect.fnUntraced({ self: this }, function* (holds: () => boolean) {
    const { alerts } = this.#shared
    yield* runSystemAlerts({
      ...{ ...alerts, every: systemAlertsFactor * alerts.every, holds },
      skewMs: this.#node.workerClock.skewMs
    })
    yield* Effect.forkScoped(runEventExpiry(holds))
    yield* Effect.forkScoped(keepBypass(this.#node.layout.ackWait, holds))
    yield* Effect.forkScoped(keepIntakeSpace(holds))
    yield* Effect.forkScoped(watchSources(holds))
    yield* Effect.forkScoped(keepFinishing(this.#node.options.findEvery ?? finishEvery))
  })

  readonly #makePartition = Effect.fnUntraced(
    { self: this },
    function* (
      { isAskedFor, isOver, ownership }: OwnedPartition,
      taken: Pick<PartitionOptions, "health" | "memory">,
      awaiting: AwaitingSpace
    ) {
      const { layout, nextId, options, workerClock } = this.#node
      const { backlogSpace, bodies, deadLetters, dutyCycle, eventAge, hosts } = this.#shared
      const { leftBodies, spreadTimes } = this.#shared
      const { maxPrefetchBytes, pool, queueSpace, records } = this.#shared
      const { checkConnection, sender, takeovers } = this.#shared
      const { holds, partition: index } = ownership
      const fence = ownerFence(ownership)
      const alerts = yield* makePartitionAlerts({ ...this.#shared.alerts, index, holds })
      const { onDeadLettered } = alerts
      const worker = options.id
      yield* queueSpace.own(index)
      return yield* Partition.make({
        ...taken,
        history: takeovers.history,
        settle: (memory, maxWaiting = options.maxWaiting) =>
          Settlement.make({
            ...{ worker, layout, memory, records, deadLetters, awaiting, fence, nextId },
            leftBodies,
            ...{ onDeadLettered, maxWaiting, queueSpace, isQueue: memory === taken.memory }
          }),
        ...{
          worker,
          nextId,
          fence,
          sender,
          checkConnection,
          alerts,
          pool,
          hosts,
          spreadTimes,
          backlogSpace,
          queueSpace,
          dutyCycle,
          bodies,
          leftBodies,
          eventAge,
          maxPrefetchBytes,
          workerClock
        },
        ackWait: layout.ackWait,
        maxBacklog: options.maxBacklog,
        findEvery: options.findEvery,
        stopping: isOver,
        releaseWithin: options.stopWithin ?? defaultStopWithin,
        isAskedFor
      })
    }
  )
}

/** Delivers in the partitions that are assigned to a worker. */
export const deliverAssigned = Effect.fnUntraced(function* (node: Node) {
  const shared = yield* acquireShared(node)
  const runner = new PartitionRunner(node, shared)
  const metrics = yield* Metrics
  const { layout, membership, owner, stopAsked, stopping } = node
  yield* maintainAssignment({
    ...{ owner, membership, stopping, stopAsked, partitions: layout.partitions },
    leaveWithin: (node.options.stopWithin ?? defaultStopWithin) / 2,
    deliver: runner.deliver,
    withheld: node.withheld,
    moved: (isHanded, ms) => metrics.moved(isHanded, ms),
    assigned: (owners) => shared.hosts.assign(owners),
    settled: (partitions) =>
      Effect.andThen(
        Effect.logInfo("delivers", { partitions, of: layout.partitions }),
        node.delivers(partitions)
      )
  })
})
