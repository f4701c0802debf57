import { Effect, FiberSet, Option, Scope } from "effect"
import { Broker } from "../broker/broker.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { originStreams } from "../domain/backlog-message.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { AttemptOutcome, DeadReason } from "../domain/outcome.ts"
import type { LiveEndpoint } from "../endpoints/directory.ts"
import { eventOutlasts } from "../policy/event-outlasts.ts"
import { isPastDeadline } from "../policy/next-step.ts"
import type { BacklogCandidate } from "../routing/partition-owner.ts"
import { timers } from "../time/timers.ts"
import { BacklogReader } from "./backlog/backlog-reader.ts"
import { BacklogRemover } from "./backlog/backlog-remover.ts"
import { BacklogWriter } from "./backlog/backlog-writer.ts"
import { DirectToBacklog } from "./backlog/direct-to-backlog.ts"
import { Drainer } from "./backlog/drainer.ts"
import { Spill } from "./backlog/spill.ts"
import { sentBytes } from "./bodies/left-bodies.ts"
import type { AckHandle } from "./execution/ack-handle.ts"
import { Interpreter } from "./execution/interpreter.ts"
import type { Settlement } from "./execution/settlement.ts"
import { SuccessLog } from "./execution/success-log.ts"
import type { TaskContext } from "./execution/task.ts"
import { DeliveryTask } from "./execution/task.ts"
import { AttemptTallies } from "./introspection/attempt-tallies.ts"
import { answerAbout } from "./partition-answers.ts"
import type { PartitionOptions, PartitionServices } from "./partition-services.ts"
import { acquirePartitionServices } from "./partition-services.ts"
import { noteOwner } from "./recovery/backlog-owners.ts"
import { FinalMemory } from "./recovery/handed-memory.ts"
import { findHandledEntries } from "./recovery/late-entries.ts"
import type { PartitionMemory, StreamMemory } from "./recovery/partition-memory.ts"
import { isKnown, noteLeft } from "./recovery/partition-memory.ts"
import type { LanePosition } from "./scheduling/lane.ts"
import { LaneScheduler } from "./scheduling/lane-scheduler.ts"
import { EventSource } from "./source/event-source.ts"
import { QueueSource } from "./source/queue-source.ts"
import { BacklogSource } from "./source/stored-source.ts"
import { recoverLeftBehind } from "./sweep/left-behind.ts"

/** How long a delivery from the queue may wait in its lane before it goes to the backlog, ms. */
const maxQueueMs = 1_000
/** How long a stop waits for endpoint facts that are still to be stored, ms. */
const maxFinalAppendMs = 2_000
/** Interval of the search for messages that a former owner stored in a backlog late, ms. */
const findIntervalMs = 60_000
/** Interval at which limits that change with time are applied, ms. */
const tickMs = 100

/**
 * Delivers the messages of one partition: those of its queue, those in its endpoints' backlogs, and
 * those that come directly from events. The consumer never waits for an endpoint: what an endpoint
 * cannot take now goes to its backlog.
 */
export class Partition {
  readonly memory: PartitionMemory
  readonly #options: PartitionOptions
  readonly #acquired: PartitionServices
  readonly #tallies = new AttemptTallies()
  readonly #lanes: LaneScheduler<DeliveryTask>
  readonly #writer: BacklogWriter
  readonly #drainer: Drainer
  readonly #context: TaskContext
  readonly #queueInterpreter: Interpreter
  readonly #queue: QueueSource
  readonly #backlog: BacklogSource
  /** Takes deliveries directly from events. */
  readonly events: EventSource
  readonly #directToBacklog: DirectToBacklog
  readonly #spill: Spill
  /** What it remembers at its end, for the next owner. */
  readonly final: FinalMemory
  /** Makes a partition that delivers nothing yet: `prepare`, then `deliverAll`. */
  static readonly make = Effect.fnUntraced(function* (options: PartitionOptions) {
    const acquired = yield* Scope.fork(yield* Effect.scope)
    const its = yield* Scope.provide(acquirePartitionServices(options), acquired)
    const partition = new Partition(options, its)
    // Until what is in flight is cancelled, it may still put a delivery into a line.
    yield* Effect.addFinalizer((exit) =>
      Effect.andThen(
        Scope.close(acquired, exit),
        Effect.sync(() => partition.#giveBackLines())
      )
    )
    yield* partition.#run()
    return partition
  })

  private constructor(options: PartitionOptions, its: PartitionServices) {
    this.#options = options
    this.#acquired = its
    this.memory = options.memory
    this.#context = this.#makeContext()
    this.#lanes = this.#makeLanes()
    const backlogInterpreter = this.#interpreterOf(options.memory.backlog, its.backlogSettlement)
    const owner = options.sender.clock.currentTimeMillisUnsafe()
    this.#writer = this.#makeWriter(owner)
    this.#drainer = this.#makeDrainer(backlogInterpreter, owner)
    this.#queueInterpreter = this.#interpreterOf(options.memory, its.queueSettlement)
    this.#spill = this.#makeSpill()
    this.final = new FinalMemory({
      memory: options.memory,
      areMovesKnown: () => this.#spill.isIdle && this.#writer.isIdle,
      isDoubtful: () => this.#isDoubtful()
    })
    this.#queue = this.#makeQueueSource()
    const { backlogSettlement: settlement, directory, facts, mayAttempt, queueSettlement } = its
    const { fence, memory, nextId, worker } = options
    this.#backlog = new BacklogSource({
      ...{ settlement, interpreter: backlogInterpreter, worker, nextId },
      drainer: this.#drainer
    })
    this.events = new EventSource(
      {
        ...{ memory, context: this.#context, fence, nextId, mayAttempt },
        settlement: queueSettlement,
        ...{ lanes: this.#lanes, health: its.health },
        isTaking: () => this.#takesFromEvents(),
        leftBodies: options.leftBodies,
        failed: (key, bytes) => options.queueSpace.willCome(memory.index, key, bytes),
        events: its.names.events
      },
      directory,
      facts
    )
    this.#directToBacklog = new DirectToBacklog({
      ...its,
      memory,
      settlement: queueSettlement,
      drainer: this.#drainer,
      writer: this.#writer,
      events: its.names.events
    })
  }

  /** Loads the health of endpoints, and finds the messages that wait in backlogs. */
  get prepare() {
    return Effect.suspend(() => {
      this.#acquired.health.load(this.#options.health)
      return this.#drainer.find
    })
  }

  /** Delivers until the worker stops. Fails where a stream was truncated: its memory is wrong. */
  readonly deliverAll = Effect.gen({ self: this }, function* () {
    const { health, healthFacts, life, tail } = this.#acquired
    const { ackWait, history } = this.#options
    yield* life.deliver
    yield* Effect.forkScoped(this.#findForever)
    yield* Effect.forkScoped(this.#recoverForever)
    const failed = yield* Effect.raceFirst(
      Effect.as(this.#queue.pull(this.#options.memory.index, ackWait), undefined),
      Effect.flip(Effect.raceFirst(tail.lost, history.lost))
    ).pipe(
      Effect.tap((failed) =>
        Effect.sync(() => {
          if (failed !== undefined || this.#options.isAskedFor()) life.end()
        })
      ),
      Effect.ensuring(Effect.sync(() => this.#giveBackLines()))
    )
    yield* this.#finishInFlight
    health.flush()
    yield* Effect.timeoutOption(FiberSet.awaitEmpty(healthFacts), maxFinalAppendMs)
    if (failed !== undefined) return yield* failed
    if (this.#options.isAskedFor()) yield* this.#prepareHandOver
  })

  /** Waits for requests in flight; what lasts too long is cancelled as the scope closes. */
  readonly #finishInFlight = Effect.gen({ self: this }, function* () {
    const { inFlight } = this.#acquired
    const { memory, releaseWithin } = this.#options
    const ended = yield* Effect.timeoutOption(inFlight.none, releaseWithin)
    if (Option.isSome(ended)) return
    yield* Effect.logWarning("what was under way in a partition was cut off, as it passes on", {
      partition: memory.index,
      deliveries: yield* inFlight.size,
      after: releaseWithin
    })
  })

  /** True while it delivers. */
  get isDelivering(): boolean {
    const { life, stopping } = this.#acquired
    return life.isDelivering && !stopping()
  }

  /** Lets nothing but what has not ended remain, for the next owner. */
  readonly #prepareHandOver = Effect.gen({ self: this }, function* () {
    yield* Effect.ignore(Effect.timeoutOption(this.#drainer.removeFinished, maxFinalAppendMs))
    // The last delivery in flight may have ended in this very turn, and its mark is still open.
    yield* Effect.yieldNow
    // What was read from a backlog meanwhile has not begun.
    this.#giveBackLines()
    if ((yield* this.#acquired.inFlight.size) === 0) this.final.note()
  })

  /** Stores a delivery directly in the backlog where it may wait there; else returns false. */
  storeInBacklog(candidate: BacklogCandidate): boolean {
    const { endpoint, tenant } = candidate.delivery
    return (
      this.#takesFromEvents() &&
      !this.#hasEnded(endpointKey(tenant, endpoint), candidate.delivery) &&
      this.#directToBacklog.store(candidate)
    )
  }

  /** Returns the number of deliveries in flight, and of all in memory. */
  get load() {
    return Effect.map(this.#acquired.inFlight.size, (inFlight) => ({
      inFlight,
      inMemory: this.#queue.size
    }))
  }

  /** Calls `add` with the URL of each endpoint that has requests in flight, and how many. */
  eachInFlight(add: (url: string, requests: number) => void): void {
    for (const key of this.#lanes.keys()) {
      const { inFlight } = this.#lanes.countsOf(key)
      const url = inFlight === 0 ? undefined : this.#acquired.directory.find(key)?.target.url
      if (url !== undefined) add(url, inFlight)
    }
  }

  /** True while this worker is its owner: the lease was renewed in time. */
  get isHeld(): boolean {
    return this.#options.fence.holds()
  }

  /** Returns whether a pull request has completed since the last call. */
  hasPulled(): boolean {
    return this.#queue.hasPulled()
  }

  /** Dead-letters a waiting delivery that was found in the queue, unless it is in flight. */
  readonly endWaiting = (handle: AckHandle, reason: DeadReason) =>
    this.#queue.endWaiting(handle, reason)

  /** Runs what runs at intervals, and answers queries, until the scope closes. */
  readonly #run = Effect.fnUntraced({ self: this }, function* () {
    const { directory, health } = this.#acquired
    yield* Effect.acquireRelease(
      Effect.sync(() => health.onFreed((key) => this.#freed(key))),
      (stop) => Effect.sync(stop)
    )
    yield* Effect.acquireRelease(
      Effect.sync(() => timers.every(tickMs, () => this.#tick())),
      (timer) => Effect.sync(() => timers.cancel(timer))
    )
    yield* Effect.acquireRelease(
      Effect.sync(() =>
        directory.onUnavailable((tenant, id) =>
          this.#lanes.becameUnavailable(endpointKey(tenant, id))
        )
      ),
      (stop) => Effect.sync(stop)
    )
    yield* answerAbout({
      options: this.#options,
      services: this.#acquired,
      lanes: this.#lanes,
      queue: this.#queue,
      tallies: this.#tallies,
      isReady: () => this.#acquired.life.isDelivering
    })
  })

  /** Called for an endpoint that may take more than before. */
  #freed(key: string): void {
    this.#lanes.advance(key)
    this.#drainer.wake(key)
  }

  #tick(): void {
    if (this.#acquired.stopping()) return
    this.#acquired.health.tick()
    this.#lanes.tick()
    this.#drainer.tick()
  }

  get #findForever() {
    const pauseMs = this.#options.findEvery ?? findIntervalMs
    const find = Effect.delay(this.#drainer.find, pauseMs)
    return keepGoing("look for what waits in backlogs", find, pauseMs, Effect.logWarning)
  }

  get #recoverForever() {
    const { mayAttempt, queueSettlement, stopping } = this.#acquired
    return recoverLeftBehind({
      memory: this.memory,
      recall: (placed) => queueSettlement.decisions.recall(placed),
      isInFlight: (placed) => this.#queue.isInFlight(placed),
      adopt: (handle, isSettled) => this.#queue.adopt(handle, isSettled),
      mayDecide: () => mayAttempt() && !stopping() && queueSettlement.isOpen && !this.#isDoubtful()
    })
  }

  /** True while it is unknown whether a stream was truncated. */
  #isDoubtful(): boolean {
    return this.#acquired.tail.isDoubtful() || this.#options.history.isDoubtful()
  }

  #takesFromEvents(): boolean {
    return this.isDelivering && this.#acquired.mayAttempt()
  }

  #hasEnded(key: string, delivery: Delivery): boolean {
    const now = this.#options.sender.clock.currentTimeMillisUnsafe()
    return this.memory.directDeliveries.endedBefore(key, delivery, now)
  }

  /** Leaves deliveries that were not begun to the next owner. */
  #giveBackLines(): void {
    for (const task of this.#lanes.clear()) task.giveBack()
  }

  /** Called with each attempt's outcome, before it is recorded. */
  #answered(
    endpoint: LiveEndpoint,
    delivery: Delivery,
    sent: AttemptOutcome,
    progress: Progress
  ): AttemptOutcome["probe"] {
    const { durationMs } = sent.result
    this.#options.alerts.windows.answered(endpoint, delivery, sent, progress)
    this.#tallies.note(endpoint, sent.verdict === "delivered", durationMs, sent.at)
    this.#lanes.answered(endpoint.key, durationMs)
    return this.#acquired.health.answered(endpoint, delivery, sent, progress)
  }

  /** Ends the request of a task whose endpoint was removed, replaced or disabled. */
  #endObsolete(task: DeliveryTask): void {
    const { config } = this.#acquired.directory.find(task.key) ?? {}
    if (config?.generation !== task.handle.delivery.generation)
      task.endRequest("the endpoint was removed")
    else if (config?.disabled !== undefined) task.endRequest("the endpoint was disabled")
  }

  /** Called when a task no longer takes up its position in its lane. */
  #left(position: LanePosition<DeliveryTask>): void {
    this.#lanes.leave(position)
    this.#drainer.wake(position.item.key)
  }

  #interpreterOf(memory: StreamMemory, settlement: Settlement): Interpreter {
    const { clock } = this.#options.sender
    const { isTrusted: isClockTrusted } = this.#options.workerClock
    const { leftBodies } = this.#options
    const { directory, mayAttempt } = this.#acquired
    return new Interpreter(
      { memory, settlement, leftBodies, clock, mayAttempt, isClockTrusted },
      directory
    )
  }

  #makeContext(): TaskContext {
    const { facts, inFlight, logsDeliveries, metrics, reached } = this.#acquired
    const { fence, memory, sender, worker } = this.#options
    return {
      ...{ sender, worker, inFlight, reached, logsDeliveries },
      successes: new SuccessLog(facts, fence, memory.completed),
      answered: (endpoint, delivery, sent, progress) =>
        this.#answered(endpoint, delivery, sent, progress),
      attemptCancelled: () => metrics.attemptCancelled(),
      succeeded: (position) => this.#lanes.recording(position),
      freed: (position) => this.#left(position)
    }
  }

  #makeLanes(): LaneScheduler<DeliveryTask> {
    const { health, index, stopping } = this.#acquired
    const { pool, sender, workerClock } = this.#options
    return new LaneScheduler<DeliveryTask>({
      pool,
      maxQueueMs,
      closed: stopping,
      limit: health.limit,
      isHeld: (key) => this.#options.queueSpace.isFull(key),
      isRetry: ({ handle }) =>
        this.memory.waiting.has(handle.place.seq) || handle.delivery.progress.attempts > 0,
      admit: health.admit,
      rateBudget: health.soon,
      hasBacklog: (key) => index.hasBacklog(key),
      bytes: (task) => sentBytes(task.handle),
      isOver: ({ handle }) =>
        isPastDeadline(handle.delivery, sender.clock.currentTimeMillisUnsafe()) &&
        workerClock.isTrusted(),
      start: (task, position) => task.start(position),
      crowdedBy: () => (pool.isShared ? this.#queue.crowdedBy() : undefined),
      becameSlow: (task) => task.becameSlow(),
      endObsolete: (task) => this.#endObsolete(task),
      defer: (task) => task.defer(),
      onCapacity: (key) => this.#drainer.wake(key)
    })
  }

  /** @param owner when this owner took over, ms since the epoch. */
  #makeWriter(owner: number): BacklogWriter {
    const { broker, index, runInBackground: run, tail } = this.#acquired
    const { backlogSpace, eventAge, fence, memory } = this.#options
    return new BacklogWriter(broker, {
      ...{ index: memory.index, owner, fence, run },
      asReference: (delivery) => eventOutlasts(delivery, eventAge()),
      wrote: (key, bytes) => backlogSpace.stored(key, bytes),
      highestOf: (key) => index.highestOf(key),
      mayReplace: (key, from) => this.#drainer.mayReplace(key, from),
      replacing: (key) => this.#drainer.replacing(key),
      replaced: (key, seqs) => this.#drainer.replaced(key, seqs),
      kept: (key) => this.#drainer.kept(key),
      truncated: () => run(tail.lose),
      leftBehind: (key, last) => this.#drainer.leftBehind(key, last)
    })
  }

  /** @param owner see `#makeWriter`. */
  #makeDrainer(interpreter: Interpreter, owner: number): Drainer {
    const {
      backlog,
      broker,
      index,
      names,
      runInBackground,
      stopping: closed,
      tail
    } = this.#acquired
    const { bodies, dutyCycle, memory, sender, workerClock } = this.#options
    const writer = this.#writer
    const isDoubtful = () => tail.isDoubtful()
    return new Drainer({
      ...{ backlog, writer, memory: memory.backlog, index, dutyCycle, closed },
      noteOwner: (last) => {
        const after = Math.min(last, memory.backlogEnd ?? last)
        return Effect.provideService(noteOwner(memory.index, { owner, after }), Broker, broker)
      },
      reader: new BacklogReader({
        ...{ broker, backlog, bodies, memory: memory.backlog },
        streams: originStreams(names, memory.index),
        forwards: (key) => [...(this.#acquired.directory.find(key)?.forwards ?? [])]
      }),
      remover: new BacklogRemover({
        ...{ broker, backlog, writer, memory: memory.backlog, isDoubtful }
      }),
      clock: sender.clock,
      isClockTrusted: workerClock.isTrusted,
      lanes: this.#lanes,
      hasOtherTenants: () => this.#options.pool.isShared,
      left: (delivery) => noteLeft(memory, names.events, delivery),
      isKnown: (delivery) => isKnown(memory, names.events, delivery),
      findHandled: (...of) =>
        Effect.provideService(findHandledEntries(memory, ...of), Broker, broker),
      begin: (key, handle) =>
        this.#lanes.refill(key, new DeliveryTask(this.#context, this.#backlog, key, handle)),
      streamTruncated: tail.lose,
      expire: (handle) =>
        Effect.provideService(
          Effect.ignore(interpreter.end(handle, handle.delivery.progress.ends ?? "deadline")),
          Broker,
          broker
        ),
      run: runInBackground
    })
  }

  #makeSpill(): Spill {
    const { health, queueSettlement: settlement } = this.#acquired
    const { memory } = this.#options
    const interpreter = this.#queueInterpreter
    const [drainer, writer] = [this.#drainer, this.#writer]
    return new Spill({ memory, interpreter, writer, drainer, health, settlement })
  }

  #makeQueueSource(): QueueSource {
    const { mayAttempt, queueSettlement: settlement, stopping } = this.#acquired
    const { isAskedFor, maxPrefetchBytes, memory, nextId, worker } = this.#options
    const interpreter = this.#queueInterpreter
    return new QueueSource({
      ...{ memory, settlement, interpreter, worker, nextId },
      // What may still come is delivered until the open request has ended.
      stopping: () => stopping() || isAskedFor(),
      context: this.#context,
      lanes: this.#lanes,
      spill: this.#spill,
      maxBytes: maxPrefetchBytes,
      isDoubtful: () => this.#isDoubtful(),
      came: (key, bytes) => this.#options.queueSpace.came(memory.index, key, bytes),
      mayAttempt
    })
  }
}
