import type { Cause, Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { Progress } from "../../domain/delivery.ts"
import type { AttemptOutcome } from "../../domain/outcome.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import type { Facts } from "../../history/facts.ts"
import type { BacklogMessage } from "../backlog/drain.ts"
import type { Drainer } from "../backlog/drainer.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import { deliveredFact } from "../execution/delivery-fact.ts"
import type { FailedAttempt } from "../execution/failed-attempt.ts"
import type { Interpreter } from "../execution/interpreter.ts"
import type { Settlement } from "../execution/settlement.ts"
import type { SuccessRecord } from "../execution/success-log.ts"
import type { AttemptToMake, IsCounted, TaskSource } from "../execution/task.ts"

export interface StoredSourceOptions {
  readonly settlement: Pick<Settlement, "conclude" | "failed">
  readonly interpreter: Pick<Interpreter, "afterDefect" | "attempt" | "readyFor">
  readonly worker: string
  /** Makes the message id of a fact about a request. */
  readonly nextId: () => string
}

/** What the queue and the backlogs have in common: each delivery is a message of a stream. */
export abstract class StoredSource<H extends AckHandle> implements TaskSource<H> {
  readonly #options: StoredSourceOptions

  constructor(options: StoredSourceOptions) {
    this.#options = options
  }

  abstract becameSlow(handle: H): void
  abstract defer(key: string, handle: H): void
  abstract giveBack(key: string, handle: H): void

  begin(handle: H): LiveEndpoint | undefined {
    return this.#options.interpreter.readyFor(handle)
  }

  decide(
    handle: H,
    isCounted: IsCounted
  ): Effect.Effect<AttemptToMake | undefined, unknown, Broker | Facts> {
    return this.#options.interpreter.attempt(handle, isCounted)
  }

  successOf(handle: H, progress: Progress, sent: AttemptOutcome): SuccessRecord {
    const { nextId, worker } = this.#options
    return { fact: deliveredFact(handle, progress, sent, worker), id: nextId() }
  }

  complete(handle: H): Effect.Effect<void> {
    return this.#options.settlement.conclude(handle)
  }

  retry(handle: H, failed: FailedAttempt): Effect.Effect<void> {
    return this.#options.settlement.failed(handle, failed)
  }

  deadLetter(handle: H, failed: FailedAttempt): Effect.Effect<void> {
    return this.#options.settlement.failed(handle, failed)
  }

  afterDefect(handle: H, cause: Cause.Cause<unknown>): Effect.Effect<void, never, Broker | Facts> {
    return this.#options.interpreter.afterDefect(handle, cause)
  }

  left(handle: H, finished: boolean): void {
    // The work was cancelled by a stop, or by another owner.
    if (!finished) handle.nak(1)
  }
}

interface BacklogSourceOptions extends StoredSourceOptions {
  readonly drainer: Pick<Drainer, "handBack">
}

/** The deliveries that are drained from the endpoints' backlogs. */
export class BacklogSource extends StoredSource<BacklogMessage> {
  readonly #drainer: BacklogSourceOptions["drainer"]

  constructor(options: BacklogSourceOptions) {
    super(options)
    this.#drainer = options.drainer
  }

  /** Its lane counts the bodies of drained deliveries from the start. */
  override becameSlow(): void {}

  /** The delivery is read again. */
  override defer(key: string, handle: BacklogMessage): void {
    this.#drainer.handBack(key, handle)
  }

  override giveBack(key: string, handle: BacklogMessage): void {
    this.#drainer.handBack(key, handle)
  }
}
