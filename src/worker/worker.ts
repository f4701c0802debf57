import { Cause, Context, Deferred, Effect, Fiber, Layer, Random } from "effect"
import { Broker } from "../broker/broker.ts"
import { watchClock } from "../broker/clock-watch.ts"
import { readLayout, refuseChange } from "../broker/installed.ts"
import { untilAnswered } from "../broker/keep-going.ts"
import { WithheldPartitions } from "../cluster/hand-over.ts"
import type { HeartbeatOptions, WorkerRefused } from "../cluster/heartbeat.ts"
import { refuseNewLayout, watchPartitions } from "../cluster/layout-watch.ts"
import { join } from "../cluster/membership.ts"
import type { Owner } from "../cluster/ownership.ts"
import { defaultTtl } from "../cluster/ownership.ts"
import { answerSelfReport } from "../cluster/self-report.ts"
import type { Partition } from "../delivery/partition.ts"
import { defaultLoad } from "../delivery/scheduling/capacity-pool.ts"
import { Directory } from "../endpoints/directory.ts"
import { Facts } from "../history/facts.ts"
import { Metrics, WorkerMetrics } from "../metrics/worker-metrics.ts"
import { runRouter } from "../routing/run-routers.ts"
import type { Node, WorkerOptions } from "./node.ts"
import { defaultStopWithin, makeGates } from "./node.ts"
import { deliverAssigned } from "./partition-runner.ts"
import { problemsOf, type WorkerState, watchReadiness } from "./readiness.ts"

export type { Role } from "../cluster/roster.ts"
export type { WorkerOptions } from "./node.ts"

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
  /** Returns the partitions that it delivers in now, in order. */
  readonly partitions: () => ReadonlyArray<number>
  /** Returns what keeps it from its work now, one sentence each; none if it is ready. */
  readonly problems: () => ReadonlyArray<string>
  /** Fails when the worker has stopped because it could not continue. */
  readonly refused: Effect.Effect<never, WorkerRefused>
}

/** Pause before a failed part of a worker is restarted, ms. */
const retryPauseMs = 1_000

/** Reads the layout and the endpoints, and joins the cluster. */
const enter = Effect.fnUntraced(function* (
  heartbeat: Omit<HeartbeatOptions, "clockSkewMs" | "mayReturn">,
  beforeJoining?: () => void
) {
  const { epoch } = yield* refuseChange
  const layout = yield* readLayout
  const mayReturn = refuseNewLayout(epoch)
  // Before the first heartbeat: while 100,000 endpoints are read, the next ones may come too late.
  // Fresh: facts of another part of this process are not counted here, nor these there.
  const facts = Layer.fresh(Facts.layer)
  const services = yield* Layer.build(Layer.mergeAll(Directory.layer, facts))
  const workerClock = yield* watchClock
  beforeJoining?.()
  const membership = yield* join({ ...heartbeat, clockSkewMs: workerClock.skewMs, mayReturn })
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
  const withheld = new WithheldPartitions(owner.ttl)
  let requests = 0
  const metrics = options.metrics ?? new WorkerMetrics()
  const { roles } = options
  const heartbeat = { owner, roles, load: loadOf(owned), withheld: withheld.list }
  const { epoch, layout, membership, services, workerClock } = yield* untilAnswered(
    "the broker does not answer, as while a cluster elects its leaders; waiting until it does",
    "the broker answers; going on",
    Effect.provideService(enter(heartbeat, options.beforeJoining), Metrics, metrics)
  )
  const asked = yield* Deferred.make<void>()
  const delivering = yield* Deferred.make<ReadonlyArray<number>>()
  const node: Node = {
    options,
    layout,
    owner,
    owned,
    gates: makeGates(),
    nextId: () => `${owner.instance}.${requests++}`,
    membership,
    withheld,
    workerClock,
    stopping: () => Deferred.isDoneUnsafe(asked),
    stopAsked: Deferred.await(asked),
    delivers: (partitions) => Deferred.succeed(delivering, partitions)
  }
  const parts = [
    ...(roles.includes("router") ? [keepUp("route", node, route(node))] : []),
    ...(roles.includes("deliver") ? [keepUp("deliver", node, deliverAssigned(node))] : [])
  ]
  const fibers = yield* Effect.forEach(parts, (part) =>
    Effect.forkScoped(
      Effect.provideService(Effect.provideContext(part, services), Metrics, metrics)
    )
  )
  const within = options.stopWithin ?? defaultStopWithin
  const broker = yield* Broker
  // Without a connection, results could not be recorded.
  const cancelled = Effect.andThen(broker.closed, Fiber.interruptAll(fibers))
  const stop = Effect.gen(function* () {
    yield* Effect.forkChild(membership.leave, { startImmediately: true })
    yield* Deferred.succeed(asked, undefined)
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
  // Where an owner does not hand its share over, whoever replaces workers one by one waits in vain.
  const delivers = () =>
    !roles.includes("deliver") || Deferred.isDoneUnsafe(delivering) || withheld.list().length > 0
  const problems = () => problemsOf(stateOf(node, broker, services, delivers()))
  // That it is stopping, its heartbeats say.
  yield* answerSelfReport(
    options.id,
    yield* watchReadiness(() => (node.stopping() ? [] : problems()))
  )
  const refused = yield* Deferred.make<never, WorkerRefused>()
  yield* Effect.raceFirst(membership.replaced, watchPartitions(layout.partitions, epoch)).pipe(
    Effect.catch((error) => Effect.andThen(stop, Deferred.fail(refused, error))),
    Effect.forkScoped
  )
  return {
    stop,
    delivering: Deferred.await(delivering),
    partitions: () => deliveredIn(owned),
    problems,
    refused: Deferred.await(refused)
  } satisfies Worker
})

/** Returns the partitions in which it delivers, in order. */
const deliveredIn = (owned: ReadonlyMap<number, Partition>): ReadonlyArray<number> =>
  [...owned]
    .flatMap(([index, { isDelivering }]) => (isDelivering ? [index] : []))
    .toSorted((one, other) => one - other)

/** Returns what a worker knows of itself now. */
const stateOf = (
  node: Node,
  broker: Broker["Service"],
  services: Context.Context<Facts | Directory>,
  delivers: boolean
): WorkerState => ({
  isConnected: broker.life() !== undefined,
  isKnown: node.membership.isCurrent(),
  clockSkewMs: node.workerClock.skewMs(),
  isHistoryOpen: Context.get(services, Facts).isOpen(),
  waits: waitsOf(node, Context.get(services, Directory)),
  unanswered: broker.unanswered().map(({ stream }) => stream),
  failedPulls: broker.failedPulls(),
  delivers,
  isReturning: !node.membership.mayTake(),
  isStopping: node.stopping(),
  overdue: [...node.owned].filter(([, { isHeld }]) => !isHeld).map(([index]) => index)
})

/** Returns what does not go on now, one sentence each. */
const waitsOf = ({ gates, options }: Node, { isCurrent }: Directory["Service"]) => [
  ...Object.values(gates).flatMap(({ problem }) => problem() ?? []),
  ...(options.roles.includes("router") && !isCurrent()
    ? ["routing waits until the endpoints have been read again"]
    : [])
]

const loadOf = (owned: ReadonlyMap<number, Partition>) =>
  Effect.suspend(() =>
    Effect.forEach(
      [...owned].filter(([, { isDelivering }]) => isDelivering),
      ([partition, { load }]) => Effect.map(load, (load) => ({ partition, ...load }))
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
const route = ({ gates, layout, options, owned, stopping, workerClock }: Node) =>
  runRouter({
    worker: options.id,
    layout,
    gates,
    prefetchBytes: Math.floor((options.maxBytes ?? defaultLoad.maxBytes) / 8),
    directBytes: Math.floor((options.maxBytes ?? defaultLoad.maxBytes) / 8),
    stopping,
    isClockTrusted: workerClock.isTrusted,
    owned: {
      attempt: (partition, direct) => owned.get(partition)?.events.take(direct) === true,
      storeInBacklog: (partition, kept) => owned.get(partition)?.storeInBacklog(kept) === true
    }
  })
