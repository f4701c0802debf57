import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { deliverConsumer, remakeConsumer } from "../../broker/consumers.ts"
import { PrefetchWindow } from "../../broker/prefetch-window.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Delivery, PlacedDelivery } from "../../domain/delivery.ts"
import { firstRound, parseDelivery } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import type { GetHeader } from "../../domain/header-names.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import type { Facts } from "../../history/facts.ts"
import type { Spill } from "../backlog/spill.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { Interpreter } from "../execution/interpreter.ts"
import type { Settlement } from "../execution/settlement.ts"
import type { AttemptToMake, IsCounted, TaskContext } from "../execution/task.ts"
import { DeliveryTask } from "../execution/task.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import { isCompletedElsewhere, renewCompletedElsewhere } from "../recovery/partition-memory.ts"
import type { LaneScheduler } from "../scheduling/lane-scheduler.ts"
import { QueueMessage } from "./queue-message.ts"
import type { StoredSourceOptions } from "./stored-source.ts"
import { StoredSource } from "./stored-source.ts"
import { UnreadableQueue } from "./unreadable-queue.ts"

/** Maximum messages of its queue that one partition holds, in flight and in lanes. */
const maxPrefetched = 128
/** How long a tenant's messages may take up most of what a partition holds, ms. */
const crowdingMs = 100
/** Pause before a delivery that is in flight is to end again, ms. */
const endWaitingPauseMs = 1_000
/** Redelivery delay of a delivery whose direct delivery is in flight, ms. */
const inFlightPauseMs = 1_000
/** Redelivery delay of a delivery that has ended while the stream may be truncated, ms. */
const doubtPauseMs = 250
/** Pause before the source asks again whether attempts may begin, ms. */
const notOwnerPauseMs = 250

export interface QueueSourceOptions extends StoredSourceOptions {
  readonly memory: PartitionMemory
  readonly context: TaskContext
  readonly settlement: Pick<
    Settlement,
    "conclude" | "failed" | "isOpen" | "ready" | "release" | "waits"
  >
  readonly lanes: Pick<LaneScheduler<DeliveryTask>, "enter">
  readonly interpreter: StoredSourceOptions["interpreter"] & Pick<Interpreter, "end">
  readonly spill: Pick<Spill, "forget" | "hasBegun" | "hurry" | "move" | "resume">
  /** Maximum bytes of bodies that it holds. */
  readonly maxBytes: number
  /** True while it is unknown whether the broker has truncated a stream. */
  readonly isDoubtful: () => boolean
  /** The source pulls nothing while this returns false. */
  readonly mayAttempt: () => boolean
  /** Called with key and body size where a delivery that was attempted before comes the first time. */
  readonly came: (key: string, bytes: number) => void
  readonly stopping: () => boolean
}

/** True for a delivery that was attempted before, or has ended and waits for space in DEAD. */
const hasBegun = ({ progress }: Delivery): boolean =>
  progress.attempts > 0 || progress.ends !== undefined

/** Pulls one partition's queue, and holds its messages until they are released. */
export class QueueSource extends StoredSource<QueueMessage> {
  readonly #options: QueueSourceOptions
  readonly #prefetch: PrefetchWindow
  /** Storage time of each message in flight, by sequence: a truncated stream reuses sequences. */
  readonly #inFlight = new Map<number, number>()
  readonly #unreadable = new UnreadableQueue()
  #hasPulled = false
  /** True from when a request was abandoned until a later one has ended. */
  #isInterrupted = false
  /** True where such a time was over since it was asked last whether the queue was pulled. */
  #wasInterrupted = false

  constructor(options: QueueSourceOptions) {
    super(options)
    this.#options = options
    this.#prefetch = new PrefetchWindow({ deliveries: maxPrefetched, bytes: options.maxBytes })
  }

  /**
   * Pulls messages until the worker stops.
   *
   * @param index of the partition.
   * @param ackWaitMs ack_wait of the consumer.
   */
  readonly pull = Effect.fnUntraced({ self: this }, function* (index: number, ackWaitMs: number) {
    const broker = yield* Broker
    const { names, pull } = broker
    yield* this.#prefetch.keepAlive(ackWaitMs)
    // What waits is all that the stream holds: the new consumer begins with the first message.
    const consumer = deliverConsumer(names, index, ackWaitMs)
    const remake = remakeConsumer(this.#stream, consumer, Effect.succeed(0))
    return yield* pull({
      remake: Effect.provideService(remake, Broker, broker),
      name: this.#stream,
      stream: this.#stream,
      consumer: names.deliverConsumer,
      kind: "deliveries",
      stopping: this.#options.stopping,
      take: (message, header) => this.take(message, header),
      tooLarge: (wanted) => this.#prefetch.tooLarge(wanted),
      asked: () => {
        this.#hasPulled = true
        this.#wasInterrupted ||= this.#isInterrupted
        this.#isInterrupted = false
      },
      abandoned: () => {
        this.#isInterrupted = true
      },
      demand: this.#capacity
    })
  })

  /** Number of messages in flight. */
  get size(): number {
    return this.#inFlight.size
  }

  /** Returns the tenant whose messages hold up those of others; undefined for none. */
  crowdedBy(): string | undefined {
    return this.#prefetch.crowdedBy(crowdingMs)
  }

  /** Number of messages that this version cannot read, as far as they were delivered. */
  get unreadableCount(): number {
    return this.#unreadable.count()
  }

  /**
   * Returns whether a pull request has completed since the last call, and none was abandoned: what
   * the broker gives to such a one comes again after a whole ack_wait only.
   */
  hasPulled(): boolean {
    const before = this.#hasPulled && !this.#wasInterrupted && !this.#isInterrupted
    this.#hasPulled = this.#wasInterrupted = false
    return before
  }

  /**
   * Marks a waiting message as in flight that was not delivered by the consumer, until
   * `releaseWaiting`. Returns false where it is in flight already.
   */
  takeWaiting({ at, seq }: Place): boolean {
    if (this.#inFlight.has(seq)) return false
    this.#inFlight.set(seq, at)
    return true
  }

  releaseWaiting({ at, seq }: Place): void {
    if (this.#inFlight.get(seq) === at) this.#inFlight.delete(seq)
  }

  /**
   * True where a delivery waits here for its next attempt, and was not attempted after `since` (ms
   * since the epoch).
   */
  isWaiting({ place }: AckHandle, since: number): boolean {
    const { memory } = this.#options
    // Without a decision it does not wait: the consumer is about to deliver it.
    const { progress } = memory.waiting.get(place.seq)?.record ?? {}
    const waits = progress !== undefined || memory.unreadRecords.has(place.seq)
    const wasAttempted = (progress?.lastAttemptAt ?? 0) > since
    return waits && !wasAttempted && !this.#inFlight.has(place.seq)
  }

  /**
   * Moves a delivery that waits here for its next attempt to its endpoint's backlog, where it goes
   * on as soon as the endpoint takes it.
   *
   * @param handle of its message, which the consumer has not delivered.
   * @param since when that was asked for, ms since the epoch. A delivery that was attempted later
   *   counts as in flight, and stays.
   */
  hurry(
    key: string,
    handle: AckHandle,
    since: number
  ): Effect.Effect<"inFlight" | "left" | "moved", unknown, Broker | Facts> {
    const { memory, spill } = this.#options
    const { place } = handle
    if (!this.isWaiting(handle, since) || !this.takeWaiting(place))
      return Effect.succeed("inFlight")
    return (spill.hurry(key, handle) ?? Effect.void).pipe(
      Effect.map(() => (memory.completed.has(place.seq, place.at) ? "moved" : "left")),
      Effect.ensuring(Effect.sync(() => this.releaseWaiting(place)))
    )
  }

  /**
   * Takes care of a message that the consumer has passed and does not redeliver, unless it is in
   * flight: releases it, or moves its delivery to its endpoint's backlog.
   *
   * @param isSettled true where the delivery has ended or was moved.
   */
  adopt(handle: AckHandle, isSettled: boolean): Effect.Effect<unknown, unknown, Broker | Facts> {
    const { settlement, spill } = this.#options
    const { delivery, place } = handle
    if (this.isInFlight(handle) || !this.takeWaiting(place)) return Effect.void
    const work: Effect.Effect<unknown, unknown, Broker | Facts> = isSettled
      ? settlement.release(handle)
      : spill.move(endpointKey(delivery.tenant, delivery.endpoint), handle)
    return Effect.ensuring(
      work,
      Effect.sync(() => this.releaseWaiting(place))
    )
  }

  /** True where a message is in flight, or its delivery is taken directly from its event now. */
  isInFlight({ delivery, place }: PlacedDelivery): boolean {
    return this.#inFlight.has(place.seq) || this.#isTakenDirectly(delivery)
  }

  /**
   * Dead-letters a delivery that waits here, unless it is in flight. Where its move to the backlog
   * was begun, it may be there, so the move goes on, and it ends there.
   *
   * @param handle of its message, which the consumer has not delivered.
   */
  readonly endWaiting = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, reason: DeadReason) {
      const { interpreter, memory, spill } = this.#options
      const { delivery, place } = handle
      if (memory.completed.has(place.seq, place.at) || isCompletedElsewhere(memory, delivery))
        return
      if (this.isInFlight(handle) || !this.takeWaiting(place)) return handle.nak(endWaitingPauseMs)
      const ended = spill.hasBegun(place) ? spill.resume(handle) : interpreter.end(handle, reason)
      yield* Effect.ensuring(
        ended,
        Effect.sync(() => this.releaseWaiting(place))
      )
    }
  )

  /** Takes the message out of the prefetch window. It stays in flight. */
  override becameSlow({ prefetched }: QueueMessage): void {
    this.#prefetch.exclude(prefetched)
  }

  /** Moves the delivery to its endpoint's backlog, unless it has ended or goes on directly. */
  override defer(key: string, handle: QueueMessage): void {
    const { context, spill } = this.#options
    const answer = spill.hasBegun(handle.place) ? undefined : this.#answerAsItBegins(handle)
    const work = answer === undefined ? spill.move(key, handle) : this.#answer(handle, answer)
    context.inFlight.run(work, (finished) => this.left(handle, finished))
  }

  override giveBack(_key: string, handle: QueueMessage): void {
    this.#options.memory.poisonGuard.clear(handle.place.seq)
    this.left(handle, false)
  }

  override left(handle: QueueMessage, finished: boolean): void {
    super.left(handle, finished)
    this.releaseWaiting(handle.place)
    this.#prefetch.release(handle.prefetched)
  }

  get #stream(): string {
    return this.#options.memory.stream
  }

  /** Takes a message that the consumer delivered: answers it, or puts its delivery in a lane. */
  take(message: StreamMessage, header: GetHeader): void {
    const { seq, storedAt } = message
    if (this.#inFlight.get(seq) === storedAt) {
      // It may have ended, and still be in flight while its record is erased.
      this.#options.memory.completed.renew(seq, storedAt)
      return
    }
    const delivery = parseDelivery(message.subject, header)
    if (message.deliveryCount === 1 && delivery !== undefined && hasBegun(delivery))
      this.#options.came(endpointKey(delivery.tenant, delivery.endpoint), message.data.length)
    const answer =
      delivery === undefined ? this.#keep(seq, message.subject) : this.#answerTo(message, delivery)
    if (answer === "ack") message.ack()
    else if (answer !== undefined) message.nak(answer)
    else if (delivery !== undefined) {
      this.#inFlight.set(seq, storedAt)
      const current = this.#withProgress(delivery)
      const prefetched = this.#prefetch.take(message, delivery.tenant)
      this.#enter(new QueueMessage(this.#stream, message, current, prefetched))
    }
  }

  /**
   * Returns what to answer to a message that must not be delivered: `ack` where its delivery has
   * ended, or a redelivery delay, ms. Returns undefined for one that is to be delivered.
   */
  #answerTo({ seq, storedAt }: StreamMessage, delivery: Delivery): "ack" | number | undefined {
    const { memory, spill } = this.#options
    // What ended is remembered in doubt as well: the message comes again, and its NAK may be lost.
    if (memory.completed.has(seq, storedAt)) {
      memory.completed.renew(seq, storedAt)
      if (this.#options.isDoubtful()) return doubtPauseMs
      spill.forget({ stream: this.#stream, seq, at: storedAt })
      return "ack"
    }
    return this.#answerToCopy(seq, delivery)
  }

  /**
   * Returns the same to a copy: the event was redelivered and routed again while its direct delivery
   * was under way.
   */
  #answerToCopy(seq: number, delivery: Delivery): "ack" | number | undefined {
    const { memory } = this.#options
    // A message with a retry record was decided about: that decision counts.
    const hasRecord = memory.unreadRecords.has(seq) || memory.waiting.has(seq)
    if (!hasRecord && isCompletedElsewhere(memory, delivery)) {
      renewCompletedElsewhere(memory, delivery)
      return this.#options.isDoubtful() ? doubtPauseMs : "ack"
    }
    return this.#isTakenDirectly(delivery) ? inFlightPauseMs : undefined
  }

  /**
   * Returns the same where a message begins, or is to be moved: a direct delivery may have begun while
   * its copy waited in its lane. After one that failed, the copy comes again and gets that progress.
   */
  #answerAsItBegins({ delivery, place }: QueueMessage): "ack" | number | undefined {
    const hasFailed = this.#withProgress(delivery) !== delivery
    return this.#answerToCopy(place.seq, delivery) ?? (hasFailed ? inFlightPauseMs : undefined)
  }

  override begin(handle: QueueMessage): LiveEndpoint | undefined {
    return this.#answerAsItBegins(handle) === undefined ? super.begin(handle) : undefined
  }

  override decide(
    handle: QueueMessage,
    isCounted: IsCounted
  ): Effect.Effect<AttemptToMake | undefined, unknown, Broker | Facts> {
    return Effect.suspend(() => {
      const answer = this.#answerAsItBegins(handle)
      return answer === undefined
        ? super.decide(handle, isCounted)
        : Effect.as(this.#answer(handle, answer), undefined)
    })
  }

  #answer(handle: QueueMessage, answer: "ack" | number): Effect.Effect<void> {
    return answer === "ack" ? handle.ack(Effect.void) : Effect.sync(() => handle.nak(answer))
  }

  #isTakenDirectly(delivery: Delivery): boolean {
    const { directDeliveries } = this.#options.memory
    return delivery.round === firstRound && directDeliveries.isInFlight(delivery)
  }

  /** Adds the progress of a direct attempt that failed after this message was stored. */
  #withProgress(delivery: Delivery): Delivery {
    if (delivery.round !== firstRound || delivery.progress.attempts > 0) return delivery
    const progress = this.#options.memory.directDeliveries.progressOf(delivery)
    return progress === undefined ? delivery : { ...delivery, progress }
  }

  #enter(handle: QueueMessage): void {
    const { context, lanes, memory, settlement, spill } = this.#options
    const { delivery, place } = handle
    const key = endpointKey(delivery.tenant, delivery.endpoint)
    if (hasBegun(delivery) || memory.waiting.has(place.seq)) settlement.waits(handle)
    // A delivery that has ended, or whose move was begun, needs no capacity in its lane.
    if (delivery.progress.ends !== undefined || spill.hasBegun(place)) this.defer(key, handle)
    else lanes.enter(key, new DeliveryTask(context, this, key, handle))
  }

  /**
   * Keeps an unreadable message in the queue: the newer version that wrote it can deliver it.
   * Returns the redelivery delay, ms.
   */
  #keep(seq: number, subject: string): number {
    const { context, memory } = this.#options
    const pause = memory.poisonGuard.afterDefect(seq)
    if (this.#unreadable.note(seq, pause)) {
      const [tenant, endpoint] = subject.split(".").slice(-2)
      const where = { stream: this.#stream, seq, tenant, endpoint }
      context.inFlight.run(
        Effect.logError("a message in a queue is unreadable to this version: kept", where),
        () => undefined
      )
    }
    return pause
  }

  /** What may be pulled now; undefined for nothing. */
  readonly #capacity = Effect.gen({ self: this }, function* () {
    const { mayAttempt, settlement } = this.#options
    if (!settlement.isOpen) {
      yield* Effect.race(settlement.ready, Effect.sleep("1 second"))
      return
    }
    yield* this.#prefetch.hasCapacity
    if (mayAttempt()) return this.#prefetch.capacity
    yield* Effect.sleep(notOwnerPauseMs)
    return
  })
}
