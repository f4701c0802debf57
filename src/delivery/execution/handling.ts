import { Cause, Clock, Effect } from "effect"
import { type Broker, BrokerError } from "../../broker/connection.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import type { InFlight, InFlightWork } from "../../broker/in-flight.ts"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import type { AttemptOutcome } from "../../domain/attempt-outcome.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import { isRecordOf } from "../../domain/retry-record.ts"
import type { LiveEndpoint, Standing } from "../../endpoints/directory.ts"
import { Directory } from "../../endpoints/directory.ts"
import { Facts } from "../../history/facts.ts"
import type { Sender } from "../http/sender.ts"
import { send, startSending } from "../http/sender.ts"
import type { StreamMemory, WaitingDelivery } from "../recovery/partition-memory.ts"
import { isErased, readRecord } from "../retry/retry-records.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import { disableWhereGone } from "./failed-attempt.ts"
import type { Settlement } from "./settlement.ts"

/**
 * Redelivery delay of a delivery that cannot be decided about now, ms. A delay of more than this is
 * a stored decision.
 */
const reservedWithinMs = 1_000
/** Redelivery delay where only the leader knows the endpoint yet, ms. */
const redeliveryPauseMs = 250
/**
 * Returned in place of a decision for a message that has ended, and whose acknowledgement the
 * broker lost.
 */
const gone = "gone"
/** A delivery that is early by no more than this is attempted at once, ms. */
const timerToleranceMs = 1

export interface HandlingOptions {
  readonly memory: StreamMemory
  readonly settlement: Settlement
  readonly sender: Sender
  readonly worker: string
  /** No attempt begins while this returns false. */
  readonly mayAttempt: () => boolean
  /** Called with each attempt's outcome and the progress before it, before it is settled. */
  readonly answered: (
    endpoint: LiveEndpoint,
    delivery: Delivery,
    sent: AttemptOutcome,
    progress: Progress
  ) => void
}

/** Stores a delivery elsewhere, with its progress. */
export type Relocate = (held: AckHandle, progress: Progress) => Effect.Effect<PubAck, PublishError>

/**
 * Handles the messages of one stream. A decision that was stored earlier is applied. A delivery
 * ends if its endpoint is gone or its deadline has passed. A delivery that arrives before its time
 * is NAKed or scheduled. Otherwise one attempt is made and settled, or the delivery moves to where
 * it can wait.
 */
export const makeHandling = Effect.fnUntraced(function* (options: HandlingOptions) {
  const { memory, sender, settlement } = options
  const { poisonGuard } = memory
  const directory = yield* Directory
  const context = yield* Effect.context<Broker>()
  const facts = yield* Facts
  const reached = yield* Failpoint
  const { clock } = sender

  /**
   * Returns the stored decision about a message: from memory, or from the leader where a former
   * owner made it.
   */
  const recall = (held: AckHandle) => {
    const { seq } = held.place
    const known = memory.waiting.get(seq)
    if (known !== undefined && isRecordOf(known.record, held.delivery)) return Effect.succeed(known)
    // A truncated stream reuses the sequence for another message.
    if (known !== undefined) memory.waiting.delete(seq)
    return memory.recorded.has(seq) ? recallFormer(held) : Effect.succeed(undefined)
  }

  const recallFormer = Effect.fnUntraced(function* (held: AckHandle) {
    const { seq, stream } = held.place
    const record = yield* readRecord(stream, seq)
    const isGone = record === undefined && (yield* isErased(stream, seq, held.delivery))
    memory.recorded.delete(seq)
    if (isGone) return gone
    if (record === undefined || !isRecordOf(record, held.delivery)) return undefined
    const isOutcomeRecorded = memory.told.has(seq, record)
    const waiting: WaitingDelivery = { record, isOutcomeRecorded }
    memory.waiting.set(seq, waiting)
    return waiting
  })

  /** Returns the endpoint if the delivery may be attempted now, as far as memory alone can tell. */
  const readyFor = (held: AckHandle): LiveEndpoint | undefined => {
    const { delivery, place } = held
    const isNew = !memory.waiting.has(place.seq) && !memory.recorded.has(place.seq)
    if (!isNew || !settlement.isOpen() || !options.mayAttempt()) return undefined
    const now = clock.currentTimeMillisUnsafe()
    const { ends, nextAttemptAt = 0 } = delivery.progress
    const isTime = now < delivery.deadline && now + timerToleranceMs >= nextAttemptAt
    return isTime && ends === undefined && !poisonGuard.watches(held, 0)
      ? directory.liveNow(delivery)
      : undefined
  }

  const answered = (
    held: AckHandle,
    endpoint: LiveEndpoint,
    sent: AttemptOutcome,
    progress: Progress
  ) => {
    reached("answered")
    options.answered(endpoint, held.delivery, sent, progress)
  }

  /** Attempts a delivery and settles the outcome. */
  const attempt = (held: AckHandle, progress: Progress, endpoint: LiveEndpoint) => {
    return Effect.flatMap(send(sender, held, endpoint, progress.attempts + 1), (sent) => {
      answered(held, endpoint, sent, progress)
      return sent.verdict === "delivered"
        ? settlement.succeeded(held, progress, sent)
        : afterFailure(held, progress, endpoint, sent)
    })
  }

  /** Does the same on the fast path, without a fiber. Nearly all deliveries take it. */
  const attemptFast = (
    held: AckHandle,
    endpoint: LiveEndpoint,
    work: InFlightWork<Broker | Facts>
  ) => {
    const { progress } = held.delivery
    work.step(() => {
      const running = startSending(sender, held, endpoint, progress.attempts + 1, (sent) =>
        work.step(() => {
          answered(held, endpoint, sent, progress)
          if (sent.verdict === "delivered") settlement.succeedPlainly(held, progress, sent, work)
          else work.continueInFiber(guarded(held, afterFailure(held, progress, endpoint, sent)))
        })
      )
      work.onCancel(() => running.interrupt())
    })
  }

  const afterFailure = Effect.fnUntraced(function* (
    held: AckHandle,
    progress: Progress,
    endpoint: LiveEndpoint,
    sent: AttemptOutcome
  ) {
    yield* settlement.failed(held, progress, sent, endpoint)
    yield* disableWhereGone(held, endpoint, sent, options.worker)
  })

  /**
   * Checks everything that must hold before an attempt, and makes the attempt.
   *
   * @param instead called instead of the attempt.
   */
  const decide = Effect.fnUntraced(function* (
    held: AckHandle,
    instead?: (progress: Progress) => Effect.Effect<void>
  ) {
    const waiting = yield* recall(held)
    if (waiting === gone) return yield* settlement.finish(held)
    if (waiting !== undefined && !isDue(waiting, yield* Clock.currentTimeMillis))
      return yield* settlement.resume(held, waiting)
    if (!settlement.isOpen()) yield* settlement.ready
    const now = yield* Clock.currentTimeMillis
    const progress = waiting?.record.progress ?? held.delivery.progress
    if (waiting === undefined && progress.ends !== undefined)
      return yield* settlement.end(held, progress, progress.ends)
    const standing = yield* directory.standing(held.delivery)
    const trials = trialsOf(waiting)
    const pause = poisonGuard.pauseBefore(held, trials)
    if (pause > 0 && now < held.delivery.deadline) return held.nak(pause)
    if (standing._tag !== "Live") return yield* settlement.end(held, progress, endReason(standing))
    if (now >= held.delivery.deadline) {
      const reason = trials > 0 ? "defect" : "deadline"
      return yield* settlement.end(held, progress, reason)
    }
    if (!options.mayAttempt()) {
      poisonGuard.clear(held)
      return held.nak(reservedWithinMs)
    }
    const { nextAttemptAt = 0 } = progress
    const wait = nextAttemptAt - now
    if (waiting === undefined && wait > timerToleranceMs) {
      poisonGuard.clear(held)
      // A broker schedule fires at most a little early. A longer wait means that a direct attempt
      // failed before the delivery was queued.
      return yield* wait > reservedWithinMs
        ? settlement.postpone(held, progress, nextAttemptAt)
        : Effect.sync(() => held.nak(wait))
    }
    if (instead !== undefined) return yield* instead(progress)
    // The endpoint was created just now: its live state, with its limits, is not known here yet.
    if (directory.find(standing.endpoint.key) === undefined) return held.nak(redeliveryPauseMs)
    const told = progress.attempts - held.delivery.progress.attempts
    if (trials > 0 || poisonGuard.watches(held, told))
      yield* settlement.mark(held, progress, trials + 1)
    yield* attempt(held, progress, standing.endpoint)
  })

  const afterDefect = Effect.fnUntraced(function* (held: AckHandle, cause: Cause.Cause<unknown>) {
    const { seq, stream } = held.place
    const pause = poisonGuard.afterDefect(seq)
    yield* Effect.logError("a delivery met a defect and comes back later", cause, {
      stream,
      seq,
      pause
    })
    const now = yield* Clock.currentTimeMillis
    if (now < held.delivery.deadline) return held.nak(pause)
    yield* end(held, "defect").pipe(Effect.catchCause(() => Effect.sync(() => held.nak(pause))))
  })

  const end = Effect.fnUntraced(function* (held: AckHandle, reason: DeadReason) {
    const waiting = yield* recall(held)
    if (waiting === gone) return yield* settlement.finish(held)
    const progress = waiting?.record.progress ?? held.delivery.progress
    yield* settlement.end(held, progress, progress.ends ?? reason)
  })

  /**
   * A defect of Petrel, or a record that does not parse, is not the receiver's fault: it uses up no
   * attempt.
   */
  const guarded = <E>(held: AckHandle, work: Effect.Effect<void, E, Broker | Facts>) =>
    Effect.catchCauseIf(
      work,
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        // The broker does not answer: nothing is known of the delivery, so nothing is decided.
        Cause.squash(cause) instanceof BrokerError
          ? Effect.sync(() => held.nak(reservedWithinMs))
          : afterDefect(held, cause)
    )
  const services = Effect.provideService(Facts, facts)

  return {
    /** Attempts a delivery, or does what applies instead. */
    deliver: (
      held: AckHandle,
      inFlightWork: InFlight<Broker | Facts>,
      ended: (finished: boolean) => void
    ) => {
      const endpoint = readyFor(held)
      if (endpoint === undefined) inFlightWork.run(guarded(held, decide(held)), ended)
      else {
        const afterDefect = (defect: unknown) => guarded(held, Effect.die(defect))
        attemptFast(held, endpoint, inFlightWork.begin(ended, afterDefect))
      }
    },
    /** Moves a delivery elsewhere, where `decide` would attempt it. */
    defer: (held: AckHandle, store: Relocate) =>
      guarded(
        held,
        decide(held, (progress) => settlement.moved(held, store(held, progress)))
      ),
    /** Dead-letters a delivery, where it would be attempted. */
    refuse: (held: AckHandle, reason: DeadReason) =>
      guarded(
        held,
        decide(held, (progress) => settlement.end(held, progress, reason))
      ),
    /** Ends a delivery without an attempt. */
    end: (held: AckHandle, reason: DeadReason) =>
      end(held, reason).pipe(Effect.provideContext(context), services)
  }
})

export type Handling = Effect.Success<ReturnType<typeof makeHandling>>

/** True where the next step is an attempt whose time has come. */
const isDue = (
  { record: { decision }, isOutcomeRecorded }: WaitingDelivery,
  now: number
): boolean =>
  decision._tag === "Trying" ||
  (isOutcomeRecorded && decision._tag === "Nak" && decision.at - now <= timerToleranceMs)

/** Returns how many marked attempts were begun without an outcome. */
const trialsOf = (waiting: WaitingDelivery | undefined): number =>
  waiting?.record.decision._tag === "Trying" ? waiting.record.decision.times : 0

const endReason = (standing: Exclude<Standing, { readonly _tag: "Live" }>): DeadReason =>
  standing._tag === "Removed" ? "endpoint-removed" : "endpoint-disabled"
