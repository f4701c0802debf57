/*
 * One delivery under way, whatever it came from.
 *
 *     waiting → sending → recording → released
 *        ↓  ↗       ↓         ↑
 *     deciding   deciding ────┘
 *     any of them → cancelled
 *
 * Waiting: the task stands in its endpoint's lane. Its turn comes with `start`.
 * Deciding: it cannot be sent as memory alone tells, or its attempt failed. A fiber finds out what
 *   to do, stores the decision, and applies it (execution/interpreter.ts, execution/settlement.ts).
 * Sending: one request is in flight; no fiber waits for it, the task is called back.
 * Recording: the history is asked to store the outcome.
 * Released: the source gave the message or the event back to the broker; the lane begins the next.
 * Cancelled: the worker stops, or lost the partition. The message is redelivered.
 */
import { Cause, Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { FailpointName } from "../../broker/failpoint.ts"
import type { InFlight } from "../../broker/in-flight.ts"
import { CallbackWork } from "../../broker/in-flight.ts"
import type { AttemptOutcome } from "../../domain/attempt-outcome.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import type { PlacedDelivery } from "../../domain/placed-delivery.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import type { Facts } from "../../history/facts.ts"
import type { Running } from "../http/attempt.ts"
import type { Sender } from "../http/sender.ts"
import { startSending } from "../http/sender.ts"
import type { LanePosition } from "../scheduling/lane.ts"
import { logFact } from "./delivery-fact.ts"
import type { FailedAttempt } from "./failed-attempt.ts"
import { giveUpWhereGone, judgeFailure } from "./failed-attempt.ts"
import type { SuccessLog, SuccessRecord } from "./success-log.ts"

/** An attempt that may be made now. */
export interface AttemptToMake {
  readonly endpoint: LiveEndpoint
  /** The progress before the attempt. */
  readonly progress: Progress
}

type Work<A> = Effect.Effect<A, unknown, Broker | Facts>

/**
 * Where tasks come from and return to: the queue, the backlogs, or the events. One object per
 * partition and kind.
 */
export interface TaskSource<H extends PlacedDelivery> {
  /**
   * Begins a delivery whose turn it is. Returns the endpoint where memory alone shows that it may
   * be attempted now; else undefined, and `decide` is called.
   */
  begin(handle: H): LiveEndpoint | undefined
  /** Decides about any other delivery. Returns the attempt to make, or undefined for none. */
  decide(handle: H): Work<AttemptToMake | undefined>
  /** Returns what the history is to store of a success. */
  successOf(handle: H, progress: Progress, sent: AttemptOutcome): SuccessRecord
  /** Releases a delivery whose success the history holds. Returns what remains to be done. */
  complete(handle: H): Effect.Effect<void>
  /** Records a failed attempt, and lets the delivery wait for the next one. */
  retry(handle: H, failed: FailedAttempt): Work<void>
  /** Records a failed attempt, and ends the delivery. */
  deadLetter(handle: H, failed: FailedAttempt, reason: DeadReason): Work<void>
  /** Handles a defect of Petrel, or data that does not parse. It uses up no attempt. */
  afterDefect(handle: H, cause: Cause.Cause<unknown>): Work<void>
  /** Called when the task is slow, or its endpoint is known to be slow. */
  becameSlow(handle: H): void
  /** Takes back a task that was not begun and cannot wait in memory. */
  defer(key: string, handle: H): void
  /** Leaves a task that was not begun to the partition's next owner. */
  giveBack(key: string, handle: H): void
  /** Called once a begun task is released, or was cancelled. */
  left(handle: H, finished: boolean): void
}

/** What the tasks of one partition share. */
export interface TaskContext {
  readonly sender: Sender
  readonly worker: string
  readonly inFlight: InFlight<Broker | Facts>
  readonly successes: SuccessLog
  readonly reached: (step: FailpointName) => void
  /** True where each success is logged. */
  readonly logsDeliveries: boolean
  /**
   * Called with each attempt's outcome and the progress before it, before it is recorded. Returns
   * what a probe's outcome is told with.
   */
  readonly answered: (
    endpoint: LiveEndpoint,
    delivery: Delivery,
    sent: AttemptOutcome,
    progress: Progress
  ) => AttemptOutcome["probe"]
  /** Called when a request was cancelled that its receiver may have processed. */
  readonly cutOff: () => void
  /** Called when a task no longer takes up its position in its lane. */
  readonly freed: (position: LanePosition<DeliveryTask>) => void
}

/** A delivery under way. `H` is what its source knows it by. */
export class DeliveryTask<H extends PlacedDelivery = PlacedDelivery> extends CallbackWork<
  Broker | Facts
> {
  /** Key of its endpoint. */
  readonly key: string
  readonly handle: H
  readonly #source: TaskSource<H>
  readonly #context: TaskContext
  #position: LanePosition<DeliveryTask> | undefined
  #request: Running | undefined
  #isSending = false

  constructor(context: TaskContext, source: TaskSource<H>, key: string, handle: H) {
    super()
    this.#context = context
    this.#source = source
    this.key = key
    this.handle = handle
  }

  /** Called by its lane when its turn has come. */
  start(position: LanePosition<DeliveryTask>): void {
    this.#position = position
    this.#context.inFlight.add(this)
    const endpoint = this.#source.begin(this.handle)
    if (endpoint !== undefined) this.#send({ endpoint, progress: this.handle.delivery.progress })
    else
      this.inFiber(this.#source.decide(this.handle), (attempt) => {
        if (attempt === undefined) this.done()
        else this.#send(attempt)
      })
  }

  /** Called by its lane when it is slow, or its endpoint is known to be slow. */
  becameSlow(): void {
    this.#source.becameSlow(this.handle)
  }

  /** Called by its lane where it cannot wait in memory. */
  defer(): void {
    this.#source.defer(this.key, this.handle)
  }

  /** Called instead of `start` when the partition is released. */
  giveBack(): void {
    this.#source.giveBack(this.key, this.handle)
  }

  /**
   * Ends its request, if one is in flight: it has failed, and the delivery goes on as after any
   * failure.
   *
   * @param why one short line, for the history.
   */
  endRequest(why: string): void {
    if (this.#isSending) this.#request?.end(why)
  }

  #send(attempt: AttemptToMake): void {
    const { sender } = this.#context
    const { endpoint, progress } = attempt
    this.step(() => {
      this.#isSending = true
      this.#request = startSending(sender, this.handle, endpoint, progress.attempts + 1, (sent) =>
        this.step(() => this.#answered(attempt, sent))
      )
    })
  }

  #answered({ endpoint, progress }: AttemptToMake, outcome: AttemptOutcome): void {
    const { answered, reached, successes } = this.#context
    this.#isSending = false
    reached("answered")
    const probe = answered(endpoint, this.handle.delivery, outcome, progress)
    const sent = probe === undefined ? outcome : { ...outcome, probe }
    if (sent.verdict === "delivered")
      successes.record(this, this.#source.successOf(this.handle, progress, sent))
    else this.continueInFiber(this.#failed(endpoint, progress, sent))
  }

  /** Called once the history holds the success. Returns what remains to be done. */
  recorded(fact: Fact): Effect.Effect<void> {
    const { logsDeliveries, reached } = this.#context
    reached("outcome-stored")
    const release = this.#source.complete(this.handle)
    return logsDeliveries ? Effect.andThen(release, logFact(fact)) : release
  }

  #failed(endpoint: LiveEndpoint, progress: Progress, sent: AttemptOutcome): Work<void> {
    const source = this.#source
    const { handle } = this
    const { worker } = this.#context
    const settle = Effect.gen(function* () {
      const failed = yield* judgeFailure(handle, progress, sent, endpoint, worker)
      yield* failed.step._tag === "Dead"
        ? source.deadLetter(handle, failed, failed.step.reason)
        : source.retry(handle, failed)
      yield* giveUpWhereGone(handle, endpoint, sent, worker)
    })
    return Effect.catchCauseIf(
      settle,
      (cause) => !Cause.hasInterrupts(cause),
      (cause) => source.afterDefect(handle, cause)
    )
  }

  protected override cancelled(): void {
    this.#request?.interrupt()
    if (this.#isSending) this.#context.cutOff()
  }

  protected override ended(finished: boolean): void {
    if (this.#position !== undefined) this.#context.freed(this.#position)
    this.#source.left(this.handle, finished)
  }

  protected override afterDefect(defect: unknown): Work<void> {
    return this.#source.afterDefect(this.handle, Cause.die(defect))
  }
}
