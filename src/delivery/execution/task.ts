/*
 * One delivery under way, whatever it came from. Its mode:
 *
 *     waiting → sending → recording → released
 *        ↓  ↗       ↓      ↑          ↑
 *     deciding   deciding ─┴──────────┘
 *     waiting → returned
 *     sending, deciding, recording → cancelled
 *
 * Waiting: the task stands in its endpoint's lane. Its turn comes with `start`.
 * Deciding: it cannot be sent as memory alone tells, its attempt failed, or it met a defect. A fiber
 *   finds out what to do (execution/interpreter.ts, execution/failed-attempt.ts).
 * Sending: one request is in flight; no fiber waits for it, the task is called back.
 * Recording: the outcome of an attempt is stored and applied: a success by execution/success-log.ts,
 *   a failure by its source (execution/settlement.ts).
 * Released: the source gave the message or the event back to the broker; the lane begins the next.
 * Returned: it was not begun, and its source has it again.
 * Cancelled: the worker stops, lost the partition, or could not decide. The message is redelivered.
 *
 * A call that does not fit the mode is a defect of Petrel: it is logged, and changes nothing.
 */
import { Cause, Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { FailpointName } from "../../broker/failpoint.ts"
import type { InFlight } from "../../broker/in-flight.ts"
import { CallbackWork } from "../../broker/in-flight.ts"
import type { TaskMode } from "../../cluster/introspection.ts"
import type { Delivery, PlacedDelivery, Progress } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import type { AttemptOutcome, DeadReason } from "../../domain/outcome.ts"
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
  /** Present where the delivery's message does not hold its body. */
  readonly body?: Uint8Array
}

/**
 * True where a request of a task to the endpoint is counted against the cap of its present host, or
 * there is no cap.
 */
export type IsCounted = (endpoint: LiveEndpoint) => boolean

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
  decide(handle: H, isCounted: IsCounted): Work<AttemptToMake | undefined>
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
  readonly attemptCancelled: () => void
  /** Called when a task's request has succeeded, which is being recorded. */
  readonly succeeded: (position: LanePosition<DeliveryTask>) => void
  /** Called when a task no longer takes up its position in its lane. */
  readonly freed: (position: LanePosition<DeliveryTask>) => void
}

/** The modes in which a task may be before it enters another. */
const enteredFrom: Readonly<Record<Exclude<TaskMode, "waiting">, ReadonlyArray<TaskMode>>> = {
  deciding: ["waiting", "sending", "recording"],
  sending: ["waiting", "deciding"],
  recording: ["sending", "deciding"],
  released: ["recording", "deciding"],
  returned: ["waiting"],
  cancelled: ["sending", "deciding", "recording"]
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
  #mode: TaskMode = "waiting"

  constructor(context: TaskContext, source: TaskSource<H>, key: string, handle: H) {
    super()
    this.#context = context
    this.#source = source
    this.key = key
    this.handle = handle
  }

  get mode(): TaskMode {
    return this.#mode
  }

  /** Called by its lane when its turn has come. */
  start(position: LanePosition<DeliveryTask>): void {
    if (this.#mode !== "waiting") {
      this.#misfit("started")
      this.#context.freed(position)
      return
    }
    this.#position = position
    this.#context.inFlight.add(this)
    const endpoint = this.#source.begin(this.handle)
    if (endpoint !== undefined) this.#send({ endpoint, progress: this.handle.delivery.progress })
    else {
      this.#enter("deciding")
      const isCounted: IsCounted = ({ sharedHost }) =>
        sharedHost === undefined || position.hostLine?.counts(sharedHost) === true
      this.inFiber(this.#source.decide(this.handle, isCounted), (attempt) => {
        if (attempt === undefined) this.done()
        else this.#send(attempt)
      })
    }
  }

  /** Called by its lane when it is slow, or its endpoint is known to be slow. */
  becameSlow(): void {
    this.#source.becameSlow(this.handle)
  }

  /** Called by its lane where it cannot wait in memory. */
  defer(): void {
    if (this.#enter("returned")) this.#source.defer(this.key, this.handle)
  }

  /** Called instead of `start` when the partition is released. */
  giveBack(): void {
    if (this.#enter("returned")) this.#source.giveBack(this.key, this.handle)
  }

  /**
   * Ends its request, if one is in flight: it has failed, and the delivery goes on as after any
   * failure.
   *
   * @param why one short line, for the history.
   */
  endRequest(why: string): void {
    if (this.#mode === "sending") this.#request?.end(why)
  }

  /** Enters a mode. Returns false, and logs a defect, where it does not follow the present one. */
  #enter(mode: Exclude<TaskMode, "waiting">): boolean {
    if (enteredFrom[mode].includes(this.#mode)) {
      this.#mode = mode
      return true
    }
    this.#misfit(mode)
    return false
  }

  #misfit(to: string): void {
    const defect = Effect.logError("ignored a call that does not fit the mode of its delivery", {
      ...this.handle.place,
      mode: this.#mode,
      to
    })
    this.#context.inFlight.run(defect, () => undefined)
  }

  #send(attempt: AttemptToMake): void {
    const { sender } = this.#context
    const { body, endpoint, progress } = attempt
    const sending = body === undefined ? this.handle : { delivery: this.handle.delivery, body }
    this.step(() => {
      if (!this.#enter("sending")) return
      this.#request = startSending(sender, sending, endpoint, progress.attempts + 1, (sent) =>
        this.step(() => this.#answered(attempt, sent))
      )
    })
  }

  #answered({ endpoint, progress }: AttemptToMake, outcome: AttemptOutcome): void {
    const isSuccess = outcome.verdict === "delivered"
    if (!this.#enter(isSuccess ? "recording" : "deciding")) return
    const { answered, reached, successes } = this.#context
    reached("answered")
    const probe = answered(endpoint, this.handle.delivery, outcome, progress)
    const sent = probe === undefined ? outcome : { ...outcome, probe }
    if (!isSuccess) {
      this.continueInFiber(this.#failed(endpoint, progress, sent))
      return
    }
    successes.record(this, this.#source.successOf(this.handle, progress, sent))
    if (this.#position !== undefined && this.#mode === "recording")
      this.#context.succeeded(this.#position)
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
    const settle = Effect.gen({ self: this }, function* () {
      const failed = yield* judgeFailure(handle, progress, sent, endpoint, worker)
      if (!this.#enter("recording")) return
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
    if (this.#mode === "sending") this.#context.attemptCancelled()
  }

  protected override ended(finished: boolean): void {
    if (!this.#enter(finished ? "released" : "cancelled")) return
    if (this.#position !== undefined) this.#context.freed(this.#position)
    this.#source.left(this.handle, finished)
  }

  protected override afterDefect(defect: unknown): Work<void> {
    if (this.#mode !== "deciding") this.#enter("deciding")
    return this.#source.afterDefect(this.handle, Cause.die(defect))
  }
}
