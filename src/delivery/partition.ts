import { Effect, FiberSet } from "effect"
import type { PartitionAlerts } from "../alerts/partition-alerts.ts"
import { Broker } from "../broker/connection.ts"
import { makeInFlight } from "../broker/in-flight.ts"
import type { AttemptOutcome } from "../domain/attempt-outcome.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { DeadReason } from "../domain/outcome.ts"
import type { LiveEndpoint } from "../endpoints/directory.ts"
import { makeEndpointHealth } from "../endpoints/endpoint-health.ts"
import type { StoredHealth } from "../endpoints/health-record.ts"
import type { Facts } from "../history/facts.ts"
import type { BacklogCandidate, DirectDelivery } from "../routing/partition-owner.ts"
import { makeBacklog } from "./backlog/backlog.ts"
import { makeDirectToBacklog } from "./backlog/direct-to-backlog.ts"
import { makeDrains } from "./backlog/drains.ts"
import type { DutyCycle } from "./backlog/expiry.ts"
import { makeSpill } from "./backlog/queue-to-backlog.ts"
import { watchForTruncation } from "./backlog/truncation-watch.ts"
import { makeHandling } from "./execution/handling.ts"
import type { Settlement } from "./execution/settlement.ts"
import type { Sender } from "./http/sender.ts"
import { answerQueries } from "./introspection/introspection-answer.ts"
import { TallyBook } from "./introspection/tally-book.ts"
import type { PartitionMemory, StreamMemory } from "./recovery/partition-memory.ts"
import { isCompletedElsewhere, noteLeft } from "./recovery/partition-memory.ts"
import type { HistoryEnd } from "./recovery/takeovers.ts"
import type { CapacityPool } from "./scheduling/capacity-pool.ts"
import type { Job } from "./scheduling/job.ts"
import { deliveryOf, giveBackTo } from "./scheduling/job.ts"
import { LaneScheduler } from "./scheduling/lane.ts"
import type { AckHandle } from "./source/ack-handle.ts"
import { leaveUntried, makeDirectDeliveries } from "./source/direct-delivery.ts"
import { makeQueueSource } from "./source/queue-source.ts"

/** Maximum messages of one endpoint's backlog. */
const largestBacklog = 1_000_000
/** How long a delivery from the queue may wait in its lane before it goes to the backlog, ms. */
const maxQueueMs = 1_000
/** Maximum deliveries of an endpoint, in flight or in line, for further direct deliveries. */
const maxWaitingDirect = 64
/**
 * Age below which an event cannot have been redelivered as new, ms: that takes an election, which
 * lasts longer.
 */
const youngMs = 1_000
/** How long a stop waits for endpoint facts that are still to be stored, ms. */
const finalAppends = 2_000
/** Interval of the search for messages that a former owner stored in a backlog late, ms. */
const findPause = 60_000
/** Interval at which limits that change with time are applied, ms. */
const tick = 100

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
  /** Input of the alerts about its endpoints. */
  readonly alerts: PartitionAlerts
  /** The worker's capacity for requests, shared by its partitions. */
  readonly room: CapacityPool
  /** Limits the time that the searches of all the worker's backlogs take. */
  readonly rest: DutyCycle
  /** Maximum bytes of bodies of its queue's messages. */
  readonly bytesInHand: number
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
  /** No attempt begins while this returns false. */
  readonly mayAttempt: () => boolean
  readonly stopping: () => boolean
}

/**
 * Delivers the messages of one partition: those of its queue, and those in its endpoints' backlogs.
 * The consumer never waits for an endpoint: what an endpoint cannot take now goes to its backlog.
 */
export const makePartition = Effect.fnUntraced(function* (options: PartitionOptions) {
  const { memory, room } = options
  const { names } = yield* Broker
  let over = false
  /** True once its endpoints may get direct deliveries. */
  let isReady = false
  const stopping = () => over || options.stopping()
  const takesFromEvents = () => isReady && !stopping() && mayAttempt()
  const backlog = yield* makeBacklog(memory.index)
  const queueSettlement = yield* options.settle(memory)
  // What fails there waits as a schedule, so that the backlog proceeds.
  const backlogSettlement = yield* options.settle(memory.backlog, 0)
  const { alerts, mayAttempt, sender, worker } = options
  // Finalizers run in reverse: this one runs after all that may still put a delivery into a line.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const job of lanes.clear()) if ("direct" in job) leaveUntried(job.direct)
    })
  )
  const inFlightWork = yield* makeInFlight<Broker | Facts>()
  // Runs before work in flight is cancelled: nothing may take its place.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      over = true
    })
  )
  const background = yield* FiberSet.make<void>()
  const runInBackground = yield* FiberSet.runtime(background)()
  const telling = yield* FiberSet.make<void>()
  const runForHealth = yield* FiberSet.runtime(telling)<Broker | Facts>()
  const health = yield* makeEndpointHealth({
    worker,
    clock: sender.clock,
    nextId: options.nextId,
    holds: mayAttempt,
    isOver: stopping,
    freed: (key) => {
      lanes.advance(key)
      drains.wake(key)
    },
    run: runForHealth
  })
  yield* alerts.watch(health.of)
  const tallies = new TallyBook()
  const common = {
    mayAttempt,
    sender,
    worker,
    answered: (
      endpoint: LiveEndpoint,
      delivery: Delivery,
      sent: AttemptOutcome,
      progress: Progress
    ) => {
      alerts.book.answered(endpoint, delivery, sent, progress)
      tallies.note(endpoint, sent.verdict === "delivered", sent.result.durationMs, sent.at)
      lanes.answered(endpoint.key, sent.result.durationMs)
      health.answered(endpoint, delivery, sent)
    }
  }
  const queue = yield* makeHandling({ ...common, memory, settlement: queueSettlement })
  const late = yield* makeHandling({
    ...common,
    memory: memory.backlog,
    settlement: backlogSettlement
  })
  const directDeliveries = yield* makeDirectDeliveries({
    ...common,
    memory,
    settlement: queueSettlement,
    nextId: options.nextId
  })
  const intake = yield* makeQueueSource({
    memory,
    settlement: queueSettlement,
    bytes: options.bytesInHand,
    ackWait: options.ackWait,
    isDoubtful: () => tail.isDoubtful() || options.history.isDoubtful(),
    mayAttempt,
    stopping,
    enter: (held) => {
      const key = endpointKey(held.delivery.tenant, held.delivery.endpoint)
      // A delivery that has ended, or whose move was begun, needs no capacity in its lane.
      const isAtOnce = held.delivery.progress.ends !== undefined || leaving.hasBegun(held.place)
      if (isAtOnce) leaving.leave(key, held)
      else lanes.enter(key, { key, held, isFromBacklog: false })
    },
    hasEnded: (place) => leaving.forget(place),
    run: (told) => inFlightWork.run(told, () => undefined)
  })

  const waiting = { memory, backlog, health, inFlightWork }
  const leaving = makeSpill({
    ...waiting,
    queue,
    drains: () => drains,
    letGo: (held) => intake.letGo(held)
  })

  const lanes = new LaneScheduler<Job>({
    room,
    bytes: (job) => deliveryOf(job).body.length,
    isOver: (job) => deliveryOf(job).delivery.deadline <= sender.clock.currentTimeMillisUnsafe(),
    lasts: (job) => {
      if (!("direct" in job)) intake.exclude(job.held)
    },
    limit: health.limit,
    admit: health.admit,
    soon: health.soon,
    isBehind: (key) => drains.isBehind(key),
    closed: stopping,
    maxQueueMs: maxQueueMs,
    start: (job, place) => {
      const { key } = job
      if ("direct" in job)
        return directDeliveries.attempt(job.direct, inFlightWork, () => {
          lanes.leave(place)
          drains.wake(key)
        })
      const { held, isFromBacklog } = job
      const handling = isFromBacklog ? late : queue
      handling.deliver(held, inFlightWork, (finished) => {
        // The work was cancelled by a stop, or by another owner.
        if (!finished) held.nak(1)
        if (!isFromBacklog) intake.letGo(held)
        lanes.leave(place)
        drains.wake(key)
      })
    },
    defer: giveBackTo({
      queue: (key, held) => leaving.leave(key, held),
      backlog: (key, held) => drains.handBack(key, held)
    }),
    onCapacity: (key) => drains.wake(key)
  })

  const drains = makeDrains({
    backlog,
    memory: memory.backlog,
    most: options.maxBacklog ?? largestBacklog,
    wants: (key) => lanes.rateBudget(key),
    awaitRoom: (key) => lanes.awaitRoom(key),
    reserve: (key, most) => {
      const use = lanes.reserve(key, most)
      return { bytes: use.bytes, giveBack: () => room.giveBack(use) }
    },
    left: (delivery) => noteLeft(memory, names.events, delivery),
    expire: (held) => Effect.ignore(late.end(held, "deadline")),
    clock: sender.clock,
    begin: (key, held) => lanes.refill(key, { key, held, isFromBacklog: true }),
    rest: options.rest,
    isDoubtful: () => tail.isDoubtful(),
    streamTruncated: Effect.suspend(() => tail.lose),
    run: runInBackground
  })
  const tail = yield* watchForTruncation(memory.backlog.stream, drains.highest)

  const keep = yield* makeDirectToBacklog({ ...waiting, settlement: queueSettlement, drains })

  const toNextOwner = giveBackTo({
    queue: (_, held) => {
      memory.poisonGuard.clear(held)
      held.nak(1)
      intake.letGo(held)
    },
    backlog: (key, held) => drains.handBack(key, held)
  })
  /** Leaves deliveries that were not begun to the next owner. */
  const giveBack = Effect.sync(() => {
    for (const job of lanes.clear()) toNextOwner(job)
  })

  yield* Effect.acquireRelease(
    Effect.sync(() =>
      setInterval(() => {
        if (stopping()) return
        health.tick()
        lanes.tick()
        drains.tick()
      }, tick)
    ),
    (timer) => Effect.sync(() => clearInterval(timer))
  )

  yield* answerQueries({
    partition: memory.index,
    worker,
    holds: mayAttempt,
    clock: sender.clock,
    activity: {
      tallies,
      lanes,
      prefetched: intake.size,
      unreadable: () => intake.unreadable() + drains.unreadable(),
      alerts: alerts.book,
      openCircuits: health.openCircuits
    }
  })

  const findAgain = drains.find.pipe(
    Effect.catch((error) =>
      Effect.logWarning("cannot look for what waits in backlogs", { why: error.message })
    ),
    Effect.delay(options.findEvery ?? findPause),
    Effect.forever
  )

  const deliverAll = Effect.gen(function* () {
    isReady = true
    yield* Effect.forkScoped(findAgain)
    const failed = yield* Effect.raceFirst(
      Effect.as(intake.pull, undefined),
      Effect.flip(Effect.raceFirst(tail.lost, options.history.lost))
    ).pipe(
      Effect.tap((failed) =>
        Effect.sync(() => {
          over = failed !== undefined
        })
      ),
      Effect.ensuring(giveBack)
    )
    yield* inFlightWork.none
    health.flush()
    yield* Effect.timeoutOption(FiberSet.awaitEmpty(telling), finalAppends)
    if (failed !== undefined) yield* failed
  })

  /** True where the event was redelivered as if for the first time after its delivery had ended. */
  const hasEnded = (delivery: Delivery, key: string): boolean =>
    sender.clock.currentTimeMillisUnsafe() - delivery.eventAt > youngMs &&
    memory.directDeliveries.isDone(key, delivery)

  return {
    memory,
    /** Loads the health of endpoints, and finds the messages that wait in backlogs. */
    prepare: Effect.andThen(
      Effect.sync(() => health.load(options.health)),
      drains.find
    ),
    /**
     * Delivers until the worker stops. Fails where a stream was truncated, so that the memory of it
     * is wrong.
     */
    deliverAll,
    /**
     * Takes a delivery directly from its event if it can be attempted promptly: its endpoint is
     * healthy and quick, and few deliveries wait for it. Returns false where it must go to the
     * queue.
     */
    takeDirect: (direct: DirectDelivery): boolean => {
      const { key } = direct
      const isQuick = () => health.isClosed(key) && lanes.isQuick(key, maxWaitingDirect)
      // The attempt may turn out to be slow, and its body then counts.
      const isTaken =
        takesFromEvents() &&
        isQuick() &&
        room.bytesFor("quick") > 0 &&
        !hasEnded(direct.delivery, key)
      if (isTaken) lanes.enter(key, { key, direct })
      return isTaken
    },
    /** Stores a delivery directly in the backlog where it must wait there; else returns false. */
    keep: (kept: BacklogCandidate): boolean =>
      takesFromEvents() &&
      !hasEnded(kept.delivery, endpointKey(kept.delivery.tenant, kept.delivery.endpoint)) &&
      keep(kept),
    /** Returns the number of deliveries in flight, and of all in memory. */
    load: Effect.map(inFlightWork.size, (inFlight) => ({ inFlight, inMemory: intake.size() })),
    /** Returns whether a pull request has completed since the last call. */
    hasAsked: intake.hasAsked,
    /** Dead-letters a waiting delivery that was found in the queue, unless it is in flight. */
    endWaiting: Effect.fnUntraced(function* (held: AckHandle, reason: DeadReason) {
      const { delivery, place } = held
      if (memory.settled.has(place.seq, delivery) || isCompletedElsewhere(memory, delivery)) return
      if (!intake.takeWaiting(place)) return held.nak(maxQueueMs)
      yield* Effect.ensuring(
        queue.end(held, reason),
        Effect.sync(() => intake.letGo(held))
      )
    })
  }
})

export type Partition = Effect.Success<ReturnType<typeof makePartition>>
