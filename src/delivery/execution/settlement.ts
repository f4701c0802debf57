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

/** How long what the broker refuses waits before it is tried again, ms. */
const refusedRetryMs = 30_000
/**
 * How long what finds no room among the dead letters waits, unless it is woken before, ms; and over
 * how much more that is spread.
 */
const roomRetryMs = { least: 300_000, spread: 60_000 }
/** The same where it did not answer. */
const silentRetryMs = 1_000

type Decided = Pick<RetryRecord, "decision" | "progress" | "decidedAt" | "outcome">

export interface SettlementOptions extends MovesOptions {
  readonly worker: string
  /** Whether what finds no room there waits as a schedule, and not as a NAK. (Default: true) */
  readonly schedulesEnds?: boolean
  /** What a former owner would decide, the new one decides. */
  readonly fence: OwnerFence
  /** A new id for each request really made. */
  readonly nextId: () => string
  /** Told of each delivery that has ended without success, with its attempts, and when (ms since the epoch). */
  readonly onDeadLettered?: (delivery: Delivery, progress: Progress, at: number) => void
  /** Waiting in this partition by NAK, beyond which schedules are used. (Default: 20,000) */
  readonly maxWaiting?: number | undefined
}

/**
 * What is done about the outcome of an attempt: the fact first, then the release.
 *
 * Success: fact `delivered`, ack; by a former owner `delivered-late`. Anything else is decided once and written down (`RetryRecord`)
 * before it is carried out: the attempt's fact, then the NAK; or the schedule, then the ack; or
 * the dead letter, its fact, then the ack. Each step may be repeated after a crash.
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

  /** Keeps the floor of the history below the facts of `work` until it has let go of its message. */
  const unsettled = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const mark = memory.settled.open()
      return Effect.ensuring(
        work,
        Effect.sync(() => memory.settled.close(mark))
      )
    })

  /** Lets go of a message whose delivery has ended, or is stored elsewhere. */
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

  /** The same without a fiber, for this is the way of nearly every delivery. */
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

  /** How a delivery waits for its next attempt. */
  const waitUntil = (at: number): Decision => {
    const wait = waitBy(memory.waiting.size + memory.recorded.size, options.maxWaiting)
    return { _tag: wait === "nak" ? "Nak" : "Schedule", at }
  }

  /** Writes down what was decided, so that it outlives this worker. */
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

  /** Stores the fact of the attempt that led to a decision, unless that was done already. */
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

  /** Does what was decided; from wherever it was left off, where somebody may have begun. */
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
   * Lets a delivery that has ended wait as a schedule for room among the dead letters: as a NAK each
   * would take up a place of its partition's consumer, and come back to no purpose.
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

  /** Stores a delivery elsewhere as its owner, by `store`, which may be repeated. */
  const relocate = (store: Effect.Effect<PubAck, PublishError>) =>
    Effect.map(records.within(options.layout.moveDedupe / 2, Effect.andThen(asOwner, store)), () =>
      reached("moved")
    )

  /** DEAD may be full: the decision stands, and is carried out when the delivery comes back. */
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
    /** Lets go of a message once more that has ended, or lies elsewhere. */
    finish,
    /** Writes down that a delivery is tried with caution, and how often that was done. */
    mark: (held: AckHandle, progress: Progress, times: number) =>
      Effect.flatMap(Clock.currentTimeMillis, (decidedAt) =>
        remember(held, { decision: { _tag: "Trying", times }, decidedAt, progress })
      ),
    /** Lets a delivery wait whose last attempt was told of before it came here. */
    postpone: (held: AckHandle, progress: Progress, at: number) =>
      Effect.flatMap(Clock.currentTimeMillis, (decidedAt) =>
        decide(held, { decision: waitUntil(at), decidedAt, progress })
      ).pipe(patiently(held), Effect.provideContext(context)),
    /** Ends a delivery without an attempt; what was begun earlier stands. */
    end: (held: AckHandle, progress: Progress, reason: DeadReason) =>
      end(held, progress, reason).pipe(unsettled, patiently(held), Effect.provideContext(context)),
    /** Goes on with what was decided earlier. */
    resume: (held: AckHandle, waiting: WaitingDelivery) =>
      unsettled(apply(held, waiting, true)).pipe(patiently(held), Effect.provideContext(context)),
    relocate,
    /** Lets a delivery go that is stored elsewhere as it is, by `store`, which may be repeated. */
    moved: (held: AckHandle, store: Effect.Effect<PubAck, PublishError>) =>
      Effect.andThen(
        relocate(store),
        Effect.suspend(() => finish(held))
      ).pipe(unsettled, patiently(held)),
    /** Passes while what is decided is decided by the owner. */
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

/** In memory a decision is enough; the outcome's fact is in the history and may be large. */
const forgetOutcome = (record: RetryRecord): WaitingDelivery => {
  const { outcome: _, ...rest } = record
  return { record: rest, isOutcomeRecorded: true }
}
