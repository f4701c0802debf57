import type { StoredMsg } from "@nats-io/jetstream"
import { Clock, Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { endOf, scanQueue } from "../../broker/scan.ts"
import type { Retried, RetryNow } from "../../cluster/command.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import { deliveryIn, deliverySubject, roundKey } from "../../domain/delivery.ts"
import { waitingMatcher } from "../../domain/retry-record.ts"
import type { Facts } from "../../history/facts.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import { fireNow, handleOf } from "../sweep/sweep.ts"

/** What became of a delivery that is wanted now. */
type Hurried = keyof Retried

interface RetryNowOptions {
  readonly memory: PartitionMemory
  /** Ends the cool-down of an endpoint's circuit, and a Retry-After if that is to be ignored. */
  readonly probeNow: (key: string, ignoresRetryAfter: boolean) => void
  /** Returns how many deliveries wait in an endpoint's backlog. */
  readonly inBacklog: (key: string) => number
  /** Returns how far a delivery of the queue has come: a decision about it is stored separately. */
  readonly progressOf: (handle: AckHandle) => Effect.Effect<Progress, unknown, Broker>
  /** True where a delivery of the queue waits for its next attempt, as `hurry` has it. */
  readonly isWaiting: (handle: AckHandle, since: number) => boolean
  /**
   * Moves a delivery of the queue that waits for its next attempt to its endpoint's backlog, unless
   * it is in flight, or was attempted after `since` (ms since the epoch).
   */
  readonly hurry: (
    key: string,
    handle: AckHandle,
    since: number
  ) => Effect.Effect<Hurried, unknown, Broker | Facts>
}

/** Deliveries that are moved at the same time. */
const maxConcurrentMoves = 16

/** How often deliveries are looked for that have failed, but do not wait yet. */
const maxLooks = 4
/** Pause before the next look, ms. */
const lookPauseMs = 250

/** Replaces the schedule of a delivery by one that fires now. */
const fire = Effect.fnUntraced(function* (message: StoredMsg, delivery: Delivery) {
  const nextAttemptAt = yield* Clock.currentTimeMillis
  const progress = { ...delivery.progress, nextAttemptAt }
  const isFired = yield* fireNow(message, { ...delivery, progress })
  return isFired ? "moved" : "left"
})

/**
 * Lets the deliveries that wait for an endpoint go on now, or one of them: those that wait in the
 * queue move to its backlog, and those that wait as schedules come to the queue. From there they are
 * attempted as fast as the endpoint's limits allow. Each is let go on once: what fails again meanwhile
 * waits as its policy says.
 *
 * With a filter, only those of them that it means; a dry run only counts them.
 *
 * @param onProgress called with what was done so far.
 */
export const retryNow = Effect.fnUntraced(function* (
  { hurry, inBacklog, isWaiting, memory, probeNow, progressOf }: RetryNowOptions,
  key: string,
  { dryRun = false, endpoint, event, filter, ignoreRetryAfter, tenant }: RetryNow,
  onProgress: (progress: Retried) => void
) {
  const { names } = yield* Broker
  const subject = names.subjects.delivery(memory.index, tenant, endpoint)
  const since = yield* Clock.currentTimeMillis
  let retried: Retried = { moved: 0, inFlight: 0, inBacklog: 0, left: 0 }
  const note = (what: Hurried) => {
    retried = { ...retried, [what]: retried[what] + 1 }
    onProgress(retried)
  }
  /** Deliveries that have failed and are in flight, by round: on their way to where they wait, or sent. */
  const inFlight = new Map<string, AckHandle>()
  const noteMoved = (round: string) => {
    inFlight.delete(round)
    retried = { ...retried, inFlight: retried.inFlight - 1 }
    note("moved")
  }
  // Deliveries that end for want of space in DEAD are not attempted again.
  const matches = filter === undefined ? undefined : waitingMatcher(filter)
  const isMeant = ({ eventAt, eventSeq, progress }: Delivery): boolean =>
    progress.ends === undefined &&
    (event === undefined || (event.eventSeq === eventSeq && event.eventAt === eventAt))
  const each = (
    messages: Stream.Stream<StoredMsg, unknown, Broker>,
    act: (
      message: StoredMsg,
      delivery: Delivery
    ) => Effect.Effect<Hurried | undefined, unknown, Broker | Facts>
  ) =>
    messages.pipe(
      Stream.mapEffect(
        (message) => {
          const delivery = deliverySubject(message) === subject ? deliveryIn(message) : undefined
          if (delivery === undefined || !isMeant(delivery)) return Effect.void
          return Effect.map(act(message, delivery), (what) => {
            if (what !== undefined) note(what)
          })
        },
        { concurrency: maxConcurrentMoves, unordered: true }
      ),
      Stream.runDrain
    )
  retried = { ...retried, inBacklog: inBacklog(key) }
  if (!dryRun) probeNow(key, ignoreRetryAfter)
  // What goes on and fails again is stored beyond it, as a schedule or in the queue.
  let end = 0
  const look = Effect.gen(function* () {
    end = yield* endOf(memory.stream)
    const scan = (of: string) => scanQueue(memory.stream, of, 1, end)
    yield* each(
      scan(subject),
      Effect.fnUntraced(function* (message) {
        const handle = yield* handleOf(memory, message, () => undefined)
        if (handle === undefined) return undefined
        const { delivery } = handle
        const progress = yield* progressOf(handle)
        if (matches?.(delivery.type, progress) === false) return undefined
        if (dryRun) return isWaiting(handle, since) ? "moved" : "inFlight"
        const what = yield* hurry(key, handle, since)
        if (what === "inFlight" && progress.attempts > 0) inFlight.set(roundKey(delivery), handle)
        return what
      })
    )
    yield* each(
      scan(names.subjects.schedulesOf(memory.index)),
      (message, delivery): Effect.Effect<Hurried | undefined, unknown, Broker> => {
        if (matches?.(delivery.type, delivery.progress) === false) return Effect.undefined
        return dryRun ? Effect.succeed("moved") : fire(message, delivery)
      }
    )
  })
  const lookAtInFlight = Effect.gen(function* () {
    for (const [round, handle] of inFlight)
      if ((yield* hurry(key, handle, since)) === "moved") noteMoved(round)
    yield* scanQueue(memory.stream, names.subjects.schedulesOf(memory.index), end + 1).pipe(
      Stream.runForEach(
        Effect.fnUntraced(function* (message) {
          const delivery = deliverySubject(message) === subject ? deliveryIn(message) : undefined
          if (delivery === undefined || !inFlight.has(roundKey(delivery))) return
          const hasFailedSince = (delivery.progress.lastAttemptAt ?? 0) > since
          if (!hasFailedSince && (yield* fire(message, delivery)) === "moved")
            noteMoved(roundKey(delivery))
        })
      )
    )
  })
  yield* look
  const isFound = () => retried.moved + retried.inFlight + retried.left > 0
  for (let n = 1; n < maxLooks; n++)
    if (inFlight.size > 0) yield* Effect.delay(lookAtInFlight, lookPauseMs)
    else if (event !== undefined && !isFound()) yield* Effect.delay(look, lookPauseMs)
  return retried
})
