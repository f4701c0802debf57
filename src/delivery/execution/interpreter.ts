import { Cause, Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publication.ts"
import type { Progress } from "../../domain/delivery.ts"
import { slotOf } from "../../domain/fact.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import type { Directory, LiveEndpoint, Standing } from "../../endpoints/directory.ts"
import type { Facts } from "../../history/facts.ts"
import type { Goal, KnownDelivery, NextMove } from "../../policy/decide.ts"
import { decide, maxUnstoredDelayMs, timerToleranceMs } from "../../policy/decide.ts"
import { isPastDeadline } from "../../policy/next-step.ts"
import type { LeftBodies } from "../bodies/left-bodies.ts"
import type { Sender } from "../http/sender.ts"
import type { StreamMemory, WaitingDelivery } from "../recovery/partition-memory.ts"
import type { AckHandle } from "./ack-handle.ts"
import type { Decisions, Recalled } from "./decisions.ts"
import type { Settlement } from "./settlement.ts"
import type { AttemptToMake, IsCounted } from "./task.ts"

/** What carries a decision out. */
type Carrier = Pick<
  Settlement,
  | "end"
  | "isOpen"
  | "mark"
  | "moved"
  | "postpone"
  | "ready"
  | "recordOutcome"
  | "release"
  | "resume"
> & { readonly decisions: Pick<Decisions, "has" | "recall"> }

export interface InterpreterOptions {
  readonly memory: Pick<StreamMemory, "poisonGuard">
  readonly settlement: Carrier
  /** The bodies of deliveries whose messages do not hold them. */
  readonly leftBodies: Pick<LeftBodies, "read">
  readonly clock: Sender["clock"]
  /** No attempt begins while this returns false. */
  readonly mayAttempt: () => boolean
  /** False while this worker's clock may be wrong. */
  readonly isClockTrusted: () => boolean
}

/** Stores a delivery where it is moved to, with its progress. */
export type Relocate = (
  handle: AckHandle,
  progress: Progress
) => Effect.Effect<unknown, PublishError>

/** What only some goals need. */
interface Means {
  readonly isCounted?: IsCounted
  readonly store?: Relocate
}

const attemptGoal: Goal = { _tag: "Attempt" }
const relocateGoal: Goal = { _tag: "Relocate" }
const hurryGoal: Goal = { _tag: "Hurry" }

const waits = (recalled: Recalled): recalled is WaitingDelivery =>
  recalled !== undefined && recalled !== "released"

const endpointOf = ({ _tag }: Standing): KnownDelivery["endpoint"] =>
  _tag === "Live" ? "live" : _tag === "Removed" ? "removed" : "disabled"

/**
 * Finds out what is known of a message of one stream, has `policy/decide.ts` decide, and carries
 * the result out.
 */
export class Interpreter {
  readonly #options: InterpreterOptions
  readonly #directory: Directory["Service"]

  constructor(options: InterpreterOptions, directory: Directory["Service"]) {
    this.#options = options
    this.#directory = directory
  }

  /**
   * Returns the endpoint where `decide` would attempt the delivery now, as far as memory alone can
   * tell. The hot path: nearly all deliveries need no more.
   */
  readyFor(handle: AckHandle): LiveEndpoint | undefined {
    const { clock, mayAttempt, memory, settlement } = this.#options
    const { delivery, deliveryCount, place } = handle
    if (settlement.decisions.has(place) || !settlement.isOpen || !mayAttempt()) return undefined
    const now = clock.currentTimeMillisUnsafe()
    const { ends, nextAttemptAt = 0 } = delivery.progress
    const isTime = !isPastDeadline(delivery, now) && now + timerToleranceMs >= nextAttemptAt
    return isTime &&
      ends === undefined &&
      delivery.leftBytes === undefined &&
      !memory.poisonGuard.isSuspect(slotOf(place), deliveryCount)
      ? this.#directory.liveNow(delivery)
      : undefined
  }

  /** Decides about a delivery whose turn it is. Returns the attempt to make, if any. */
  attempt(handle: AckHandle, isCounted: IsCounted) {
    return this.#guarded(
      handle,
      Effect.flatMap(this.#decide(handle, attemptGoal, { isCounted }), (attempt) =>
        attempt === undefined || handle.delivery.leftBytes === undefined
          ? Effect.succeed(attempt)
          : this.#withBody(handle, attempt)
      )
    )
  }

  /** Moves a delivery whose turn has come, in place of an attempt. */
  relocate(handle: AckHandle, store: Relocate) {
    return this.#guarded(handle, this.#decide(handle, relocateGoal, { store }))
  }

  /** Moves a delivery that may be waiting for its next attempt, to be attempted now. */
  hurry(handle: AckHandle, store: Relocate) {
    return this.#guarded(handle, this.#decide(handle, hurryGoal, { store }))
  }

  /** Dead-letters a delivery whose turn has come, in place of an attempt. */
  reject(handle: AckHandle, reason: DeadReason) {
    return this.#guarded(handle, this.#decide(handle, { _tag: "End", reason }))
  }

  /** Ends a delivery without an attempt, whatever its endpoint and its time are. */
  readonly end = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, reason: DeadReason) {
      const { settlement } = this.#options
      const stored = yield* settlement.decisions.recall(handle)
      if (stored === "released") return yield* settlement.release(handle)
      const progress = stored?.record.progress ?? handle.delivery.progress
      yield* settlement.end(handle, progress, progress.ends ?? reason)
    }
  )

  /**
   * Redelivers a message later that met a defect of Petrel or does not parse: that is not the
   * receiver's fault and uses up no attempt.
   */
  readonly afterDefect = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, cause: Cause.Cause<unknown>) {
      // The broker does not answer: nothing is known of the delivery, so nothing is decided.
      if (Cause.squash(cause) instanceof BrokerError) return handle.nak(maxUnstoredDelayMs)
      const { clock, isClockTrusted, memory } = this.#options
      const pause = memory.poisonGuard.afterDefect(slotOf(handle.place))
      const where = { ...handle.place, pause }
      yield* Effect.logError("a delivery met a defect and comes back later", cause, where)
      const isOver = isPastDeadline(handle.delivery, clock.currentTimeMillisUnsafe())
      if (!isOver || !isClockTrusted()) return handle.nak(pause)
      const later = Effect.sync(() => handle.nak(pause))
      yield* Effect.catchCause(this.end(handle, "defect"), () => later)
    }
  )

  #guarded<A, E>(handle: AckHandle, work: Effect.Effect<A, E, Broker | Facts>) {
    return Effect.catchCauseIf(
      work,
      (cause) => !Cause.hasInterrupts(cause),
      (cause) => Effect.as(this.afterDefect(handle, cause), undefined)
    )
  }

  /** Decides until nothing more has to be found out, and carries the decision out. */
  readonly #decide = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, goal: Goal, { isCounted, store }: Means = {}) {
      const { settlement } = this.#options
      let recalled: Recalled = yield* settlement.decisions.recall(handle)
      let standing: Standing | undefined
      while (true) {
        const move = decide(this.#knownOf(handle, goal, recalled, standing, isCounted))
        if (move._tag === "AwaitStores") {
          yield* settlement.ready
          // That may have taken minutes.
          standing = undefined
        } else if (move._tag === "RecordOutcome") {
          if (waits(recalled)) yield* settlement.recordOutcome(handle, recalled)
          recalled = yield* settlement.decisions.recall(handle)
          // Where the broker did not take it, all is as before.
          if (!waits(recalled) || !recalled.isOutcomeRecorded) return undefined
        } else if (move._tag === "AskEndpoint")
          standing = yield* this.#directory.standing(handle.delivery)
        else if (move._tag !== "Attempt") return yield* this.#apply(handle, move, recalled, store)
        else if (standing?._tag === "Live") {
          const attempt: AttemptToMake = { endpoint: standing.endpoint, progress: move.progress }
          if (move.trial === undefined) return attempt
          yield* settlement.mark(handle, move.progress, move.trial)
          // That may have taken minutes, too.
          if (this.#mayStillAttempt(handle)) return attempt
          handle.nak(maxUnstoredDelayMs)
          return undefined
        }
      }
    }
  )

  /** Reads the body of an attempt. The delivery ends where its event is gone. */
  readonly #withBody = Effect.fnUntraced(
    { self: this },
    function* (handle: AckHandle, attempt: AttemptToMake) {
      const body = yield* this.#options.leftBodies.read(handle)
      if (body === "gone") {
        yield* this.#options.settlement.end(handle, attempt.progress, "event-gone")
        return undefined
      }
      // That may have taken seconds.
      if (this.#mayStillAttempt(handle)) return { ...attempt, body }
      handle.nak(maxUnstoredDelayMs)
      return undefined
    }
  )

  #mayStillAttempt({ delivery }: AckHandle): boolean {
    const { clock, mayAttempt, settlement } = this.#options
    const isTime = !isPastDeadline(delivery, clock.currentTimeMillisUnsafe())
    const isLive = this.#directory.liveNow(delivery) !== undefined
    return isTime && isLive && mayAttempt() && settlement.isOpen
  }

  #knownOf(
    handle: AckHandle,
    goal: Goal,
    recalled: Recalled,
    standing: Standing | undefined,
    isCounted: IsCounted | undefined
  ): KnownDelivery {
    const { clock, isClockTrusted, mayAttempt, memory, settlement } = this.#options
    const { delivery, deliveryCount, place } = handle
    return {
      goal,
      now: clock.currentTimeMillisUnsafe(),
      deadline: delivery.deadline,
      progress: delivery.progress,
      stored:
        recalled === undefined || recalled === "released"
          ? recalled
          : {
              decision: recalled.record.decision,
              decidedAt: recalled.record.decidedAt,
              progress: recalled.record.progress,
              isOutcomeRecorded: recalled.isOutcomeRecorded
            },
      areStoresOpen: settlement.isOpen,
      endpoint: standing && endpointOf(standing),
      isEndpointKnown:
        standing?._tag === "Live" && this.#directory.find(standing.endpoint.key) !== undefined,
      isCounted: standing?._tag !== "Live" || isCounted?.(standing.endpoint) !== false,
      mayAttempt: mayAttempt(),
      isClockTrusted: isClockTrusted(),
      deliveryCount,
      isCleared: memory.poisonGuard.isCleared(slotOf(place)),
      wasPaused: memory.poisonGuard.wasPaused(slotOf(place))
    }
  }

  readonly #apply = Effect.fnUntraced(
    { self: this },
    function* (
      handle: AckHandle,
      move: Exclude<
        NextMove,
        { readonly _tag: "AskEndpoint" | "Attempt" | "AwaitStores" | "RecordOutcome" }
      >,
      recalled: Recalled,
      store: Relocate | undefined
    ) {
      const { memory, settlement } = this.#options
      const slot = slotOf(handle.place)
      switch (move._tag) {
        case "Release":
          yield* settlement.release(handle)
          break
        case "Resume":
          if (waits(recalled)) yield* settlement.resume(handle, recalled)
          break
        case "Redeliver":
          if (move.why === "pause") memory.poisonGuard.pause(slot)
          if (move.why === "ours") memory.poisonGuard.clear(slot)
          handle.nak(move.delayMs)
          break
        case "Postpone":
          memory.poisonGuard.clear(slot)
          yield* settlement.postpone(handle, move.progress, move.at)
          break
        case "End":
          yield* settlement.end(handle, move.progress, move.reason)
          break
        case "Relocate":
          if (store !== undefined) yield* settlement.moved(handle, store(handle, move.progress))
      }
      return undefined
    }
  )
}
