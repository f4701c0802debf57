import type { StoredMsg } from "@nats-io/jetstream"
import type { Clock } from "effect"
import { Effect } from "effect"
import type { Delivery } from "../../domain/delivery.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import type { Backlog } from "./backlog.ts"
import type { Drain } from "./drain.ts"
import { deliveryIn } from "./drain.ts"

/** Pause before it is tried again to end what could not be ended, ms. */
const endPause = 30_000

export interface ExpiryOptions {
  readonly backlog: Pick<Backlog, "read" | "remove">
  readonly memory: Pick<StreamMemory, "settled">
  readonly clock: Clock.Clock
  /** Ends a delivery whose time is over; it was read and is not begun. */
  readonly expire: (held: AckHandle) => Effect.Effect<void>
  /** Keeps a message that this version cannot read, and has no deadline for that reason. */
  readonly keep: (drain: Drain, seq: number) => Effect.Effect<void>
  /** Messages and bytes that are read at a time. */
  readonly batch: { readonly messages: number; readonly bytes: number }
  /** Shared by all backlogs that one worker looks through. */
  readonly rest: DutyCycle
}

/**
 * Looking through backlogs has its cost: nothing is read for deadlines until then, ms since the epoch.
 */
export interface DutyCycle {
  until: number
}

/** How much longer than a reading the rest after it is: a tenth of a worker's time goes into them. */
const restFor = 9
/** How long a reading may take before another one begins beside it, ms. */
const readingTime = 1_000

/**
 * What passes its deadline in a backlog ends though its endpoint takes nothing: nobody waits for
 * those in front. All that waits is read for it when the first deadline has passed, or none is known,
 * a piece at a time and one backlog's after the other's: for at most a tenth of a worker's time, and
 * not while the endpoint takes something.
 */
export const makeExpiry = (options: ExpiryOptions) => {
  const { backlog, batch, clock, memory, rest } = options

  const isDue = (drain: Drain): boolean => {
    const next = drain.look === undefined ? Math.min(drain.nextDeadline, drain.nextStored) : 0
    return clock.currentTimeMillisUnsafe() >= Math.max(rest.until, next)
  }

  /** Its place is given up by itself: what is in front of it stays. False where it could not be ended. */
  const end = Effect.fnUntraced(function* (drain: Drain, message: StoredMsg, delivery: Delivery) {
    const { seq } = message
    if (memory.settled.has(seq, delivery)) return true
    const held = drain.hold(message, delivery)
    let gone: Effect.Effect<void> | undefined
    yield* options.expire({
      ...held,
      ack: (erase) =>
        Effect.sync(() => {
          gone = erase
        }),
      nak: () => undefined
    })
    if (gone !== undefined) {
      yield* backlog.remove(seq, ({ time }) => time.getTime() === message.time.getTime())
      drain.window.gone(seq)
      drain.count--
      yield* gone
      memory.settled.delete(seq)
    }
    drain.release(seq)
    return gone !== undefined
  })

  /**
   * Ends what has passed its deadline in the next piece of a backlog, where it is time to look.
   *
   * @param isWanted true once its endpoint takes something.
   */
  const look = Effect.fnUntraced(function* (drain: Drain, isWanted: () => boolean) {
    if (!isDue(drain) || isWanted()) return
    const now = clock.currentTimeMillisUnsafe()
    rest.until = now + readingTime
    if (drain.look === undefined) drain.nextStored = Number.POSITIVE_INFINITY
    let { first, from } = drain.look ?? { first: Number.POSITIVE_INFINITY, from: 0 }
    from = Math.max(from, drain.window.passed)
    drain.look = { first, from }
    const messages = yield* backlog.read(drain.to, from, batch.messages, batch.bytes)
    const over: Array<readonly [StoredMsg, Delivery]> = []
    for (const message of messages) {
      from = message.seq + 1
      const delivery = deliveryIn(message)
      if (delivery === undefined) yield* options.keep(drain, message.seq)
      if (delivery === undefined || drain.window.has(message.seq)) continue
      if (delivery.deadline > now) first = Math.min(first, delivery.deadline)
      else over.push([message, delivery])
    }
    const endOne = ([message, delivery]: readonly [StoredMsg, Delivery]) =>
      isWanted()
        ? Effect.sync(() => {
            first = now
          })
        : Effect.map(end(drain, message, delivery), (isGone) => {
            if (!isGone) first = Math.min(first, now + endPause)
          })
    yield* Effect.forEach(over, endOne, { concurrency: 16, discard: true })
    const isWhole = (messages.at(-1)?.header.get("Nats-Num-Pending") ?? "0") === "0"
    if (isWhole) drain.nextDeadline = first
    drain.look = isWhole ? undefined : { first, from }
    const done = clock.currentTimeMillisUnsafe()
    rest.until = done + restFor * (done - now)
  })

  return {
    isDue,
    look,
    /** How long until it is worth asking again, ms. */
    pause: ({ look }: Drain, usual: number): number =>
      look === undefined
        ? usual
        : Math.max(1, Math.min(usual, rest.until - clock.currentTimeMillisUnsafe()))
  }
}
