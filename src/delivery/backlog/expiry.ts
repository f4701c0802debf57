import type { StoredMsg } from "@nats-io/jetstream"
import type { Clock } from "effect"
import { Effect } from "effect"
import type { Delivery } from "../../domain/delivery.ts"
import { isPastDeadline } from "../../policy/deadline.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { Backlog } from "./backlog.ts"
import type { Drain } from "./drain.ts"
import { deliveryIn } from "./drain.ts"

/** Pause before the end of a delivery is tried again that failed, ms. */
const endRetryMs = 30_000

export interface ExpiryOptions {
  readonly backlog: Pick<Backlog, "read" | "remove">
  readonly memory: Pick<StreamMemory, "completed">
  readonly clock: Clock.Clock
  /** False while the clock may be wrong: nothing is ended then. */
  readonly isClockTrusted: () => boolean
  /** Ends a delivery whose deadline has passed. It was read and is not begun. */
  readonly expire: (handle: AckHandle) => Effect.Effect<void>
  /** Keeps an unreadable message, whose deadline is therefore unknown. */
  readonly keep: (drain: Drain, seq: number) => Effect.Effect<void>
  /** Maximum messages and bytes per read. */
  readonly batch: { readonly messages: number; readonly bytes: number }
  /** Limits the time that the searches of all the worker's backlogs take. */
  readonly dutyCycle: DutyCycle
}

/**
 * No search for deadlines begins before `until`, ms of the monotonic clock. Searches cost time and
 * requests.
 */
export interface DutyCycle {
  until: number
}

/**
 * Ratio of the pause after a read to the read's duration: searches take a tenth of a worker's time.
 */
const pauseFactor = 9
/** How long a read may take before another one may begin, ms. */
const maxReadMs = 1_000

/**
 * Ends deliveries in a backlog whose deadline has passed while the endpoint accepts nothing. They
 * may be anywhere in the backlog, so all messages are searched once the earliest known deadline has
 * passed, or none is known. The search reads one batch at a time, one backlog after the other,
 * takes at most a tenth of a worker's time, and stops while the endpoint accepts deliveries.
 */
export const makeExpiry = (options: ExpiryOptions) => {
  const { backlog, batch, clock, memory, dutyCycle } = options

  const elapsed = (): number => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

  const isDue = (drain: Drain): boolean => {
    const next = drain.scan === undefined ? Math.min(drain.nextDeadline, drain.nextStored) : 0
    if (clock.currentTimeMillisUnsafe() < next || elapsed() < dutyCycle.until) return false
    return options.isClockTrusted()
  }

  /**
   * Ends a delivery and removes its message individually: those before it stay. Returns false where
   * it could not be ended.
   */
  const end = Effect.fnUntraced(function* (drain: Drain, message: StoredMsg, delivery: Delivery) {
    const { seq } = message
    const at = message.time.getTime()
    if (memory.completed.has(seq, at)) return true
    const handle = drain.hold(message, delivery)
    let gone: Effect.Effect<void> | undefined
    yield* options.expire({
      ...{ place: handle.place, delivery, body: handle.body, deliveryCount: handle.deliveryCount },
      ack: (erase) =>
        Effect.sync(() => {
          gone = erase
        }),
      nak: () => undefined
    })
    if (gone !== undefined) {
      yield* backlog.remove(seq, ({ time }) => time.getTime() === at)
      drain.window.gone(seq)
      drain.count--
      yield* gone
      memory.completed.delete(seq)
    }
    drain.release(seq)
    return gone !== undefined
  })

  /**
   * Ends what has passed its deadline in the next batch of a backlog, if a search is due.
   *
   * @param isWanted returns true once the endpoint accepts deliveries.
   */
  const scan = Effect.fnUntraced(function* (drain: Drain, isWanted: () => boolean) {
    if (!isDue(drain) || isWanted()) return
    const now = clock.currentTimeMillisUnsafe()
    const begun = elapsed()
    dutyCycle.until = begun + maxReadMs
    if (drain.scan === undefined) drain.nextStored = Number.POSITIVE_INFINITY
    let { first, from } = drain.scan ?? { first: Number.POSITIVE_INFINITY, from: 0 }
    from = Math.max(from, drain.window.passed)
    drain.scan = { first, from }
    const messages = yield* backlog.read(drain.to, from, batch.messages, batch.bytes)
    const over: Array<readonly [StoredMsg, Delivery]> = []
    for (const message of messages) {
      from = message.seq + 1
      const delivery = deliveryIn(message)
      if (delivery === undefined) yield* options.keep(drain, message.seq)
      if (delivery === undefined || drain.window.has(message.seq)) continue
      if (!isPastDeadline(delivery, now)) first = Math.min(first, delivery.deadline)
      else over.push([message, delivery])
    }
    const endOne = ([message, delivery]: readonly [StoredMsg, Delivery]) =>
      isWanted()
        ? Effect.sync(() => {
            first = now
          })
        : Effect.map(end(drain, message, delivery), (isGone) => {
            if (!isGone) first = Math.min(first, now + endRetryMs)
          })
    yield* Effect.forEach(over, endOne, { concurrency: 16, discard: true })
    const isWhole = (messages.at(-1)?.header.get("Nats-Num-Pending") ?? "0") === "0"
    if (isWhole) drain.nextDeadline = first
    drain.scan = isWhole ? undefined : { first, from }
    const done = elapsed()
    dutyCycle.until = done + pauseFactor * (done - begun)
  })

  return {
    isDue,
    scan,
    /** Returns the pause until the next check, ms. */
    pause: ({ scan }: Drain, usual: number): number =>
      scan === undefined ? usual : Math.max(1, Math.min(usual, dutyCycle.until - elapsed()))
  }
}
