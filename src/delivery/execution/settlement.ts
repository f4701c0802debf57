import type { Context } from "effect"
import { Clock, Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { FailpointName } from "../../broker/failpoint.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import type { PubAck, PublishError } from "../../broker/publication.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import { deliveryId, firstRound } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Fact } from "../../domain/fact.ts"
import { placeName, slotOf } from "../../domain/fact.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import type { Decision, RetryRecord } from "../../domain/retry-record.ts"
import { Facts } from "../../history/facts.ts"
import { decisionAfter, endingOf, nakDelayMs, waitUntil } from "../../policy/decide.ts"
import type { LeftBodies } from "../bodies/left-bodies.ts"
import { withBody } from "../bodies/left-bodies.ts"
import type { PendingAppend } from "../recovery/completed-deliveries.ts"
import type { StreamMemory, WaitingDelivery } from "../recovery/partition-memory.ts"
import { findMoved, isEndFact, makeIsAttemptRecorded } from "../retry/applied-steps.ts"
import type { AwaitingSpace } from "../retry/dead-letter-gate.ts"
import type { MovesOptions } from "../retry/moves.ts"
import { makeMoves } from "../retry/moves.ts"
import type { QueueSpace } from "../retry/queue-space.ts"
import type { AckHandle } from "./ack-handle.ts"
import type { Decided } from "./decisions.ts"
import { Decisions } from "./decisions.ts"
import { deliveryFact, logFact } from "./delivery-fact.ts"
import type { FailedAttempt } from "./failed-attempt.ts"

/** Redelivery delay after the broker refused to store a message, ms. */
const refusedRetryMs = 30_000
/**
 * How long a delivery waits for space in DEAD unless it is woken earlier: at least `least` ms,
 * spread over `spread` ms more.
 */
const spaceRetryMs = { least: 300_000, spread: 60_000 }
/** Redelivery delay after the broker did not answer, ms. */
const silentRetryMs = 1_000

type Applying = Effect.Effect<void, PublishError | BrokerError, Broker>

export interface SettlementOptions extends MovesOptions {
  readonly memory: StreamMemory
  readonly worker: string
  /**
   * Knows what waits for space in DEAD; undefined where nobody wakes it, so that nothing may wait.
   * Shared by the partition's queue and backlog.
   */
  readonly awaiting: Pick<AwaitingSpace, "note"> | undefined
  /** The bodies of deliveries whose messages do not hold them. */
  readonly leftBodies: Pick<LeftBodies, "leave" | "read">
  /** What endpoints may let wait in queues. (Default: no limit) */
  readonly queueSpace?: Pick<QueueSpace, "isFullForEnded" | "left" | "waits" | "willCome">
  /** True for the settlement of the partition's queue. */
  readonly isQueue?: boolean
  /** Makes the message id of a fact. */
  readonly nextId: () => string
  /**
   * Called when a delivery has ended without success, with its progress and the time (ms since the
   * epoch).
   */
  readonly onDeadLettered?: (delivery: Delivery, progress: Progress, at: number) => void
  /** Deliveries that wait by NAK; above this number, schedules are used. (Default: 20,000) */
  readonly maxWaiting?: number | undefined
}

const isRefusal = (error: PublishError | BrokerError): boolean =>
  error._tag === "PublishError" && error.reason === "rejected"

const waitOf = ({ _tag }: Decision): Fact["wait"] =>
  _tag === "Nak" ? "nak" : _tag === "Schedule" ? "schedule" : undefined

/**
 * Settles the messages of one stream: records decisions, then applies them.
 *
 * For anything but a success, one decision is made and stored as a `RetryRecord` before it is
 * applied: the attempt's fact, then the NAK; or the schedule, then the acknowledgement; or the dead
 * letter, its fact, then the acknowledgement. Each step may be repeated after a crash.
 */
export class Settlement {
  readonly decisions: Decisions
  /** True where the history holds the fact of the attempt that a record is about. */
  readonly isAttemptRecorded: Effect.Success<typeof makeIsAttemptRecorded>
  readonly #options: SettlementOptions
  readonly #memory: StreamMemory
  readonly #facts: Facts["Service"]
  readonly #moves: Effect.Success<ReturnType<typeof makeMoves>>
  readonly #reached: (step: FailpointName) => void
  /**
   * Marks of decisions that are being applied, or could not be yet, by slot: some of their facts may
   * be stored, and the messages are there.
   */
  readonly #unapplied = new Map<number, PendingAppend>()
  /** For effects that run without their caller's services. */
  readonly #services: Context.Context<Broker>

  static readonly make = Effect.fnUntraced(function* (options: SettlementOptions) {
    return new Settlement(
      options,
      yield* Facts,
      yield* makeMoves(options),
      yield* makeIsAttemptRecorded,
      yield* Failpoint,
      yield* Effect.context<Broker>()
    )
  })

  private constructor(
    options: SettlementOptions,
    facts: Facts["Service"],
    moves: Effect.Success<ReturnType<typeof makeMoves>>,
    isAttemptRecorded: Effect.Success<typeof makeIsAttemptRecorded>,
    reached: (step: FailpointName) => void,
    services: Context.Context<Broker>
  ) {
    this.#options = options
    this.#memory = options.memory
    this.#facts = facts
    this.#moves = moves
    this.isAttemptRecorded = isAttemptRecorded
    this.#reached = reached
    this.#services = services
    this.decisions = new Decisions(options.memory, options.records, options.fence, services)
  }

  /** True while the broker stores facts and retry records. */
  get isOpen(): boolean {
    return this.#facts.isOpen() && this.#options.records.isOpen()
  }

  /** Waits until it does. */
  get ready(): Effect.Effect<void> {
    return Effect.andThen(this.#facts.ready, this.#options.records.ready)
  }

  /** Counts a message of the queue that waits for a retry, or is one. May be repeated. */
  waits({ body, delivery, place }: AckHandle): void {
    const { isQueue, queueSpace } = this.#options
    const key = endpointKey(delivery.tenant, delivery.endpoint)
    if (isQueue === true) queueSpace?.waits(this.#memory.index, place.seq, key, body.length)
  }

  /** Releases a message whose delivery has ended or was moved. May be repeated. */
  release(handle: AckHandle): Effect.Effect<void> {
    const { completed, poisonGuard } = this.#memory
    const slot = slotOf(handle.place)
    completed.add(slot, handle.place.at)
    poisonGuard.forget(slot)
    if (this.#options.isQueue === true)
      this.#options.queueSpace?.left(this.#memory.index, handle.place.seq)
    const erase = this.decisions.forget(handle)
    const mark = this.#takeMark(slot)
    // In a backlog the message stays for a while, with its record.
    return handle.ack(mark === undefined ? erase : Effect.ensuring(erase, this.#close(mark)))
  }

  /** Releases a message whose delivery has ended. */
  conclude(handle: AckHandle): Effect.Effect<void> {
    const { delivery } = handle
    if (delivery.round === firstRound)
      this.#memory.directDeliveries.add(endpointKey(delivery.tenant, delivery.endpoint), delivery)
    return this.release(handle)
  }

  /** Records a failed attempt, and lets the delivery wait or ends it, as its next step says. */
  readonly failed = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, { fact, progress, step }: FailedAttempt) {
      const decision = decisionAfter(step, this.decisions.count, this.#options.maxWaiting)
      const wait = waitOf(decision)
      const outcome = {
        fact: { ...fact, ...(wait === undefined ? {} : { wait }) },
        id: this.#options.nextId()
      }
      const decided = { decision, decidedAt: fact.at, outcome, progress }
      yield* this.#orRedeliver(handle, this.#decide(handle, decided))
    }
  )

  /**
   * Lets a delivery wait until `at` (ms since the epoch), where the last attempt's fact was stored
   * before the delivery was queued.
   */
  postpone(handle: AckHandle, progress: Progress, at: number): Effect.Effect<void> {
    const decision = waitUntil(at, this.decisions.count, this.#options.maxWaiting)
    return this.#orRedeliver(
      handle,
      Effect.flatMap(Clock.currentTimeMillis, (decidedAt) =>
        this.#decide(handle, { decision, decidedAt, progress })
      )
    )
  }

  /** Stores that a suspect delivery is about to be attempted for the `times`-th marked time. */
  mark(handle: AckHandle, progress: Progress, times: number) {
    return Effect.flatMap(Clock.currentTimeMillis, (decidedAt) =>
      this.decisions.store(handle, { decision: { _tag: "Trying", times }, decidedAt, progress })
    )
  }

  /** Continues with a stored decision, of which some steps may have been done. */
  resume(handle: AckHandle, waiting: WaitingDelivery): Effect.Effect<void> {
    return this.#orRedeliver(handle, this.#apply(handle, waiting, true))
  }

  /** Records the attempt that led to a stored decision, unless the history holds it. */
  recordOutcome(handle: AckHandle, waiting: WaitingDelivery): Effect.Effect<void> {
    const work = Effect.andThen(
      this.#options.fence.asOwner,
      Effect.suspend(() => this.#recordOutcome(handle, waiting, true))
    )
    return this.#orRedeliver(handle, work)
  }

  /** Ends a delivery without an attempt. A decision that was begun earlier stands. */
  end(handle: AckHandle, progress: Progress, reason: DeadReason): Effect.Effect<void> {
    return this.#orRedeliver(handle, this.#end(handle, progress, reason))
  }

  /** Moves a delivery to the backlog or the queue, as the partition's owner. `store` may be repeated. */
  relocate(store: Effect.Effect<unknown, PublishError>): Effect.Effect<void, PublishError> {
    const { fence, layout, records } = this.#options
    const owned = Effect.andThen(fence.asOwner, store)
    return Effect.map(records.unlessRefused(layout.moveDedupe / 2, owned), () =>
      this.#reached("moved")
    )
  }

  /** Moves a delivery as `relocate` does, then releases it. `store` may be repeated. */
  moved(handle: AckHandle, store: Effect.Effect<unknown, PublishError>): Effect.Effect<void> {
    const released = Effect.suspend(() => this.release(handle))
    return this.#orRedeliver(handle, Effect.andThen(this.relocate(store), released))
  }

  /**
   * Runs `work`, and keeps the history watermark below its facts until it has released its message.
   * Where a decision could not be applied, because the broker refuses a message or does not answer,
   * the message is redelivered: the decision stays, and is applied then. The watermark stays, too.
   */
  #orRedeliver(handle: AckHandle, work: Applying): Effect.Effect<void> {
    const { completed } = this.#memory
    const slot = slotOf(handle.place)
    const isApplied = Effect.suspend(() => {
      const mark = this.#unapplied.get(slot) ?? completed.open()
      this.#unapplied.set(slot, mark)
      // Where the message was released, its mark is closed once it cannot be read again.
      const done = Effect.sync(() => {
        if (this.#takeMark(slot) !== undefined) completed.close(mark)
      })
      return Effect.andThen(work, done)
    })
    const redeliver = Effect.fnUntraced(function* (error: PublishError | BrokerError) {
      yield* Effect.logDebug("a decision could not be carried out yet", {
        delivery: deliveryId(handle.delivery),
        why: error.message
      })
      handle.nak(isRefusal(error) ? refusedRetryMs : silentRetryMs)
    })
    return Effect.provideContext(Effect.catch(isApplied, redeliver), this.#services)
  }

  #takeMark(slot: number): PendingAppend | undefined {
    const mark = this.#unapplied.get(slot)
    this.#unapplied.delete(slot)
    return mark
  }

  /** Lets the history watermark pass the facts of a decision. */
  #close(mark: PendingAppend): Effect.Effect<void> {
    return Effect.sync(() => this.#memory.completed.close(mark))
  }

  /** Each try is the owner's: a break of the connection may have outlasted the lease. */
  #append(fact: Fact, id: string): Effect.Effect<PubAck> {
    const owned = Effect.as(this.#options.fence.asOwner, { fact, id })
    return Effect.tap(this.#facts.appendAnew(owned), ({ seq }) =>
      Effect.sync(() => this.#memory.completed.stored(seq))
    )
  }

  readonly #decide = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, decided: Decided) {
      const waiting = yield* this.decisions.store(handle, decided)
      this.#reached("decided")
      yield* this.#apply(handle, waiting, false)
    }
  )

  /**
   * Applies a decision. `begun` is true where it may have been applied in part before; the finished
   * steps are then searched for.
   */
  readonly #apply = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, waiting: WaitingDelivery, begun: boolean) {
      const { record } = waiting
      const { decision } = record
      yield* this.#options.fence.asOwner
      yield* this.#recordOutcome(handle, waiting, begun)
      switch (decision._tag) {
        case "Nak":
          this.waits(handle)
          return handle.nak(
            nakDelayMs(decision.at, record.decidedAt, yield* Clock.currentTimeMillis)
          )
        case "Schedule":
          return yield* this.#schedule(handle, record, decision.at, begun)
        case "Dead":
          return yield* this.#deadLetter(handle, record, decision.reason, begun)
        case "Trying":
          return
      }
    }
  )

  /** Appends the fact of the attempt that led to a decision, unless the history holds it. */
  readonly #recordOutcome = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, { isOutcomeRecorded, record }: WaitingDelivery, begun: boolean) {
      const { outcome } = record
      const isMissing =
        outcome !== undefined &&
        !isOutcomeRecorded &&
        !(begun && (yield* this.isAttemptRecorded(handle, record)))
      if (isMissing) {
        yield* this.#append(outcome.fact, outcome.id)
        this.#reached("outcome-stored")
        yield* logFact(outcome.fact)
      }
      this.decisions.outcomeRecorded(handle.place, record)
    }
  )

  readonly #schedule = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, record: RetryRecord, at: number, begun: boolean) {
      const left = { ...this.#options.leftBodies.leave(handle), place: handle.place }
      yield* this.#moves.toSchedule(left, record, at, begun)
      this.#reached("moved")
      const { body, delivery } = left
      const key = endpointKey(delivery.tenant, delivery.endpoint)
      this.#options.queueSpace?.willCome(this.#memory.index, key, body.length)
      yield* this.#scheduled(handle, record)
    }
  )

  /** Releases a message whose schedule is stored. */
  #scheduled(handle: AckHandle, { progress }: RetryRecord): Effect.Effect<void> {
    if (progress.ends !== undefined) this.#options.awaiting?.note(handle.delivery.tenant)
    return this.release(handle)
  }

  readonly #deadLetter = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, record: RetryRecord, reason: DeadReason, begun: boolean) {
      const stored = yield* Effect.result(
        this.#moves.toDead(yield* this.#whole(handle), record, reason, begun)
      )
      if (stored._tag === "Success") {
        this.#reached("dead-stored")
        return yield* this.#recordEnd(handle, record, reason, stored.success)
      }
      const { awaiting, queueSpace } = this.#options
      const { endpoint, tenant } = handle.delivery
      if (awaiting === undefined || !isRefusal(stored.failure)) return yield* stored.failure
      return yield* queueSpace?.isFullForEnded(endpointKey(tenant, endpoint)) === true
        ? this.#recordEnd(handle, record, reason, undefined)
        : this.#awaitSpace(handle, record, reason)
    }
  )

  /** Returns a delivery with its body: empty where its event is gone. */
  readonly #whole = Effect.fnUntraced({ self: this }, function* (handle: AckHandle) {
    const { delivery, place } = handle
    if (delivery.leftBytes === undefined) return handle
    const body = yield* this.#options.leftBodies.read(handle)
    return { place, delivery: withBody(delivery), body: body === "gone" ? new Uint8Array() : body }
  })

  /**
   * Appends the fact of an end, and releases the message.
   *
   * @param dead sequence of the dead letter in DEAD; undefined where DEAD takes none and too many
   *   of its endpoint's wait for space there: then the fact alone tells of the end.
   */
  readonly #recordEnd = Effect.fnUntraced(
    { self: this },
    function* (
      handle: AckHandle,
      record: RetryRecord,
      reason: DeadReason,
      dead: number | undefined
    ) {
      const at = yield* Clock.currentTimeMillis
      const { lastError = "", lastErrorClass, lastStatus, attempts, probes } = record.progress
      const fact: Fact = {
        ...deliveryFact(handle, "dead-lettered", at, this.#options.worker),
        ...{ reason, dead, attempt: attempts, probes, status: lastStatus },
        error:
          lastErrorClass === undefined ? undefined : { class: lastErrorClass, message: lastError }
      }
      const { duplicate, seq } = yield* this.#append(fact, `${placeName(handle.place)}.end`)
      if (duplicate && !(yield* isEndFact(seq, handle.delivery)))
        yield* this.#append(fact, this.#options.nextId())
      this.#reached("end-stored")
      this.#options.onDeadLettered?.(handle.delivery, record.progress, fact.at)
      yield* this.conclude(handle)
      yield* logFact(fact)
    }
  )

  /**
   * Lets an ended delivery wait for space in DEAD as a broker schedule. A NAK would take one of its
   * consumer's pending acknowledgements, and redeliver the message for nothing.
   */
  readonly #awaitSpace = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, { progress }: RetryRecord, reason: DeadReason) {
      const decidedAt = yield* Clock.currentTimeMillis
      const spread = (handle.place.seq % 60) * (spaceRetryMs.spread / 60)
      const at = decidedAt + spaceRetryMs.least + spread
      const { record } = yield* this.decisions.store(handle, {
        decision: { _tag: "Schedule", at },
        decidedAt,
        progress: { ...progress, ends: reason }
      })
      yield* this.#schedule(handle, record, at, false)
    }
  )

  readonly #end = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, progress: Progress, reason: DeadReason) {
      const waiting = this.decisions.inMemory(handle)
      const ending = endingOf(waiting?.record)
      if (waiting !== undefined) {
        if (ending === "apply") return yield* this.#apply(handle, waiting, true)
        yield* this.#recordOutcome(handle, waiting, true)
        const mayBeMoved = ending === "unless-moved"
        if (mayBeMoved && (yield* findMoved(handle, this.#memory.index, waiting.record)))
          return yield* this.#scheduled(handle, waiting.record)
      }
      const decidedAt = yield* Clock.currentTimeMillis
      yield* this.#decide(handle, { decision: { _tag: "Dead", reason }, decidedAt, progress })
    }
  )
}
