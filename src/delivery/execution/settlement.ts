import { Clock, Effect, LogLevel } from "effect"
import type { Broker, BrokerError } from "../../broker/connection.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import type { InFlightWork } from "../../broker/in-flight.ts"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import type { OwnerFence } from "../../cluster/owner-fence.ts"
import type { AttemptOutcome } from "../../domain/attempt-outcome.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import { deliveryId, firstRound } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Fact } from "../../domain/fact.ts"
import { placeName } from "../../domain/fact.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import { Facts } from "../../history/facts.ts"
import { waitBy } from "../../policy/wait.ts"
import type { WaitingDelivery } from "../recovery/partition-memory.ts"
import { findMoved, isEndFact, isTold } from "../recovery/search.ts"
import { type MovesOptions, makeMoves } from "../retry/moves.ts"
import type { Decision, RetryRecord } from "../retry/retry-record.ts"
import { eraseRecord, isOf, writeRecord } from "../retry/retry-record.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import { deliveredFact, deliveryFact, logFact } from "./delivery-fact.ts"
import { judgeFailure } from "./failed-attempt.ts"
import { makeSuccesses } from "./successes.ts"

/** Redelivery delay after the broker refused to store a message, ms. */
const refusedRetryMs = 30_000
/**
 * How long a delivery waits for space in DEAD unless it is woken earlier: at least `least` ms,
 * spread over `spread` ms more.
 */
const roomRetryMs = { least: 300_000, spread: 60_000 }
/** Redelivery delay after the broker did not answer, ms. */
const silentRetryMs = 1_000

type Decided = Pick<RetryRecord, "decision" | "progress" | "decidedAt" | "outcome">

export interface SettlementOptions extends MovesOptions {
  readonly worker: string
  /**
   * Whether a delivery waits for space in DEAD as a broker schedule, not by NAK. (Default: true)
   */
  readonly schedulesEnds?: boolean
  /** Stops a former owner: only the current owner decides. */
  readonly fence: OwnerFence
  /** Makes an id for each request that is sent. */
  readonly nextId: () => string
  /**
   * Called when a delivery has ended without success, with its progress and the time (ms since the
   * epoch).
   */
  readonly onDeadLettered?: (delivery: Delivery, progress: Progress, at: number) => void
  /**
   * Deliveries of this partition that wait by NAK; above this number, schedules are used. (Default:
   * 20,000)
   */
  readonly maxWaiting?: number | undefined
}

/**
 * Settles the outcome of an attempt: the fact first, then the release.
 *
 * A success appends the fact `delivered` (a former owner appends `delivered-late`), then
 * acknowledges. For anything else, one decision is made and stored as a `RetryRecord` before it is
 * applied: the attempt's fact, then the NAK; or the schedule, then the acknowledgement; or the dead
 * letter, its fact, then the acknowledgement. Each step may be repeated after a crash.
 */
export const makeSettlement = Effect.fnUntraced(function* (options: SettlementOptions) {
  const { memory, records, worker } = options
  const { asOwner } = options.fence
  const context = yield* Effect.context<Broker>()
  const facts = yield* Facts
  const reached = yield* Failpoint
  const logsDeliveries = yield* LogLevel.isEnabled("Debug")
  const moves = yield* makeMoves(options)
  const append = Effect.fnUntraced(function* (fact: Fact, id: string) {
    const stored = yield* facts.append(fact, id)
    memory.settled.stored(stored.seq)
    return stored
  })

  /**
   * Keeps the history watermark below the facts of `work` until `work` has released its message.
   */
  const unsettled = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const mark = memory.settled.open()
      return Effect.ensuring(
        work,
        Effect.sync(() => memory.settled.close(mark))
      )
    })

  /** Releases a message whose delivery has ended or is stored elsewhere. */
  const finish = (held: AckHandle): Effect.Effect<void> => {
    const { seq, stream } = held.place
    memory.settled.add(seq, held.delivery)
    memory.poisonGuard.forget(seq)
    const known = memory.waiting.delete(seq)
    const recorded = memory.recorded.delete(seq)
    const erase = known || recorded
    return held.ack(
      erase ? Effect.provideContext(eraseRecord(stream, seq, held.delivery), context) : Effect.void
    )
  }

  const conclude = (held: AckHandle): Effect.Effect<void> => {
    const { delivery } = held
    if (delivery.round === firstRound)
      memory.directDeliveries.add(endpointKey(delivery.tenant, delivery.endpoint), delivery)
    return finish(held)
  }

  const release = (held: AckHandle, fact: Fact, seq: number) => {
    memory.settled.stored(seq)
    reached("outcome-stored")
    const rest = conclude(held)
    return logsDeliveries ? Effect.andThen(rest, logFact(fact)) : rest
  }

  const successes = yield* makeSuccesses(options.fence, memory.settled)

  const succeeded = (held: AckHandle, progress: Progress, sent: AttemptOutcome) =>
    unsettled(
      Effect.flatMap(
        successes.append(deliveredFact(held, progress, sent, worker), options.nextId()),
        ({ fact, seq }) => release(held, fact, seq)
      )
    )

  /** Does the same on the fast path, without a fiber. Nearly all deliveries take it. */
  const succeedPlainly = (
    held: AckHandle,
    progress: Progress,
    sent: AttemptOutcome,
    work: InFlightWork<Broker>
  ) =>
    successes.appendPlainly(work, {
      fact: deliveredFact(held, progress, sent, worker),
      id: options.nextId(),
      stored: (fact, seq) => release(held, fact, seq)
    })

  /** Chooses how a delivery waits for its next attempt. */
  const waitUntil = (at: number): Decision => {
    const wait = waitBy(memory.waiting.size + memory.recorded.size, options.maxWaiting)
    return { _tag: wait === "nak" ? "Nak" : "Schedule", at }
  }

  /** Stores a decision, so that it outlives this worker. */
  const remember = Effect.fnUntraced(function* (held: AckHandle, decided: Decided) {
    yield* asOwner
    const { endpoint, eventAt, eventSeq, round, tenant } = held.delivery
    const of = { eventSeq, eventAt, tenant, endpoint, round }
    const record: RetryRecord = { v: 1, ...of, ...decided }
    const { seq, stream } = held.place
    yield* records.untilStored(
      Effect.provideContext(writeRecord(stream, seq, record, held.delivery.deadline), context)
    )
    const waiting: WaitingDelivery = { record, isOutcomeRecorded: false }
    memory.waiting.set(seq, waiting)
    return waiting
  })

  const decide = Effect.fnUntraced(function* (held: AckHandle, decided: Decided) {
    const waiting = yield* remember(held, decided)
    reached("decided")
    yield* apply(held, waiting, false)
  }, unsettled)

  /** Appends the fact of the attempt that led to a decision, unless the history holds it. */
  const tell = Effect.fnUntraced(function* (
    held: AckHandle,
    { record, isOutcomeRecorded }: WaitingDelivery,
    begun: boolean
  ) {
    const { outcome } = record
    if (outcome !== undefined && !isOutcomeRecorded && !(begun && (yield* isTold(held, record)))) {
      yield* append(outcome.fact, outcome.id)
      reached("outcome-stored")
      yield* logFact(outcome.fact)
    }
    if (memory.waiting.has(held.place.seq))
      memory.waiting.set(held.place.seq, forgetOutcome(record))
  })

  /**
   * Applies a decision. `begun` is true where it may have been applied in part before; the finished
   * steps are then searched for.
   */
  const apply = Effect.fnUntraced(function* (
    held: AckHandle,
    waiting: WaitingDelivery,
    begun: boolean
  ) {
    const { decision } = waiting.record
    yield* asOwner
    yield* tell(held, waiting, begun)
    switch (decision._tag) {
      case "Nak": {
        const now = yield* Clock.currentTimeMillis
        held.nak(decision.at - now)
        return
      }
      case "Schedule":
        return yield* schedule(held, waiting.record, decision.at, begun)
      case "Dead":
        return yield* deadLetter(held, waiting.record, decision.reason, begun)
      case "Trying":
        return
    }
  })

  const schedule = Effect.fnUntraced(function* (
    held: AckHandle,
    record: RetryRecord,
    at: number,
    begun: boolean
  ) {
    yield* moves.toSchedule(held, record, at, begun)
    reached("moved")
    yield* finish(held)
  })

  const deadLetter = Effect.fnUntraced(function* (
    held: AckHandle,
    record: RetryRecord,
    reason: DeadReason,
    begun: boolean
  ) {
    const stored = yield* Effect.result(moves.toDead(held, record, reason, begun))
    if (stored._tag === "Failure") {
      const isWaiting = options.schedulesEnds !== false && isRefusal(stored.failure)
      return yield* isWaiting ? awaitRoom(held, record, reason) : stored.failure
    }
    const dead = stored.success
    reached("dead-stored")
    const { lastError, lastErrorClass, lastStatus, attempts } = record.progress
    const fact: Fact = {
      ...deliveryFact(held, "dead-lettered", yield* Clock.currentTimeMillis, worker),
      reason,
      dead,
      attempt: attempts,
      status: lastStatus,
      error:
        lastErrorClass === undefined
          ? undefined
          : { class: lastErrorClass, message: lastError ?? "" }
    }
    const { duplicate, seq } = yield* append(fact, `${placeName(held.place)}.end`)
    if (duplicate && !(yield* isEndFact(seq, held.delivery))) yield* append(fact, options.nextId())
    reached("end-stored")
    options.onDeadLettered?.(held.delivery, record.progress, fact.at)
    yield* conclude(held)
    yield* logFact(fact)
  })

  /**
   * Lets an ended delivery wait for space in DEAD as a broker schedule. A NAK would take one of its
   * consumer's pending acknowledgements, and redeliver the message for nothing.
   */
  const awaitRoom = Effect.fnUntraced(function* (
    held: AckHandle,
    { progress }: RetryRecord,
    reason: DeadReason
  ) {
    const now = yield* Clock.currentTimeMillis
    const at = now + roomRetryMs.least + (held.place.seq % 60) * (roomRetryMs.spread / 60)
    const decision = { _tag: "Schedule", at } as const
    const waiting = yield* remember(held, {
      decision,
      decidedAt: now,
      progress: { ...progress, ends: reason }
    })
    yield* schedule(held, waiting.record, at, false)
  })

  /** Stores a delivery elsewhere, as the partition's owner. `store` may be repeated. */
  const relocate = (store: Effect.Effect<PubAck, PublishError>) =>
    Effect.map(
      records.unlessRefused(options.layout.moveDedupe / 2, Effect.andThen(asOwner, store)),
      () => reached("moved")
    )

  /**
   * Redelivers a message whose decision could not be applied, for instance because DEAD is full.
   * The decision stays, and is applied then.
   */
  const patiently =
    (held: AckHandle) =>
    <R>(work: Effect.Effect<void, PublishError | BrokerError, R>): Effect.Effect<void, never, R> =>
      Effect.catch(work, (error) =>
        Effect.andThen(
          Effect.logDebug("a decision could not be carried out yet", {
            delivery: deliveryId(held.delivery),
            why: error.message
          }),
          Effect.sync(() => held.nak(isRefusal(error) ? refusedRetryMs : silentRetryMs))
        )
      )

  const failed = Effect.fnUntraced(function* (
    held: AckHandle,
    before: Progress,
    sent: AttemptOutcome,
    endpoint: LiveEndpoint
  ) {
    const { fact, progress, step } = yield* judgeFailure(held, before, sent, endpoint, worker)
    const decision = step._tag === "Dead" ? step : waitUntil(step.at)
    const wait = waitOf(decision)
    yield* decide(held, {
      decision,
      decidedAt: sent.at,
      outcome: {
        fact: { ...fact, ...(wait === undefined ? {} : { wait }) },
        id: options.nextId()
      },
      progress
    }).pipe(patiently(held), Effect.provideContext(context))
  })

  const end = Effect.fnUntraced(function* (
    held: AckHandle,
    progress: Progress,
    reason: DeadReason
  ) {
    const known = memory.waiting.get(held.place.seq)
    const waiting = known !== undefined && isOf(known.record, held.delivery) ? known : undefined
    const decision = waiting?.record.decision
    if (waiting !== undefined) {
      if (decision?._tag === "Dead") return yield* apply(held, waiting, true)
      yield* tell(held, waiting, true)
      if (decision?._tag === "Schedule" && (yield* findMoved(held, memory.index, waiting.record)))
        return yield* finish(held)
    }
    const decidedAt = yield* Clock.currentTimeMillis
    yield* decide(held, { decision: { _tag: "Dead", reason }, decidedAt, progress })
  })

  return {
    succeeded,
    succeedPlainly,
    failed,
    /** Releases a message again whose delivery has ended or is stored elsewhere. */
    finish,
    /** Stores that a suspect delivery is about to be attempted, and how often that happened. */
    mark: (held: AckHandle, progress: Progress, times: number) =>
      Effect.flatMap(Clock.currentTimeMillis, (decidedAt) =>
        remember(held, { decision: { _tag: "Trying", times }, decidedAt, progress })
      ),
    /**
     * Lets a delivery wait for its next attempt, where the last attempt's fact was stored before
     * the delivery was queued.
     */
    postpone: (held: AckHandle, progress: Progress, at: number) =>
      Effect.flatMap(Clock.currentTimeMillis, (decidedAt) =>
        decide(held, { decision: waitUntil(at), decidedAt, progress })
      ).pipe(patiently(held), Effect.provideContext(context)),
    /** Ends a delivery without an attempt. A decision that was begun earlier stands. */
    end: (held: AckHandle, progress: Progress, reason: DeadReason) =>
      end(held, progress, reason).pipe(unsettled, patiently(held), Effect.provideContext(context)),
    /** Continues with a stored decision. */
    resume: (held: AckHandle, waiting: WaitingDelivery) =>
      unsettled(apply(held, waiting, true)).pipe(patiently(held), Effect.provideContext(context)),
    relocate,
    /** Stores a delivery elsewhere, then releases it here. `store` may be repeated. */
    moved: (held: AckHandle, store: Effect.Effect<PubAck, PublishError>) =>
      Effect.andThen(
        relocate(store),
        Effect.suspend(() => finish(held))
      ).pipe(unsettled, patiently(held)),
    /** Succeeds while this worker owns the partition. */
    asOwner,
    fence: options.fence,
    successes,
    isOpen: () => facts.isOpen() && records.isOpen(),
    ready: Effect.andThen(facts.ready, records.ready)
  }
})

export type Settlement = Effect.Success<ReturnType<typeof makeSettlement>>

const isRefusal = (error: PublishError | BrokerError): boolean =>
  error._tag === "PublishError" && error.reason === "rejected"

const waitOf = ({ _tag }: Decision): Fact["wait"] =>
  _tag === "Nak" ? "nak" : _tag === "Schedule" ? "schedule" : undefined

/** Drops the outcome's fact from memory: it is in the history, and may be large. */
const forgetOutcome = (record: RetryRecord): WaitingDelivery => {
  const { outcome: _, ...rest } = record
  return { record: rest, isOutcomeRecorded: true }
}
