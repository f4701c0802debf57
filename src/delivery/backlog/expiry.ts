import type { StoredMsg } from "@nats-io/jetstream"
import type { Clock } from "effect"
import { Effect } from "effect"
import type { Delivery } from "../../domain/delivery.ts"
import type { Held } from "../lanes/held.ts"
import type { StreamMemory } from "../memory/partition-memory.ts"
import type { Backlog } from "./backlog.ts"
import type { Drain } from "./drain.ts"
import { deliveryIn } from "./drain.ts"

/** Pause before it is tried again to end what could not be ended, ms. */
const endPause = 30_000

export interface ExpiryOptions {
  readonly backlog: Backlog
  readonly memory: StreamMemory
  readonly clock: Clock.Clock
  /** Ends a delivery whose time is over; it was read and is not begun. */
  readonly expire: (held: Held) => Effect.Effect<void>
  /** Messages and bytes that are read at a time. */
  readonly batch: { readonly messages: number; readonly bytes: number }
  /** Shared by all backlogs that one worker looks through. */
  readonly rest: Rest
}

/** Looking through backlogs has its cost: nothing is read for deadlines until then, ms since the epoch. */
export interface Rest {
  until: number
}

/**
 * What passes its deadline in a backlog ends though its endpoint takes nothing: nobody waits for
 * those in front. All that waits is read for it when the first deadline has passed, for at most a
 * tenth of a worker's time, and no longer once the endpoint takes something.
 */
export const makeExpiry = (options: ExpiryOptions) => {
  const { backlog, batch, clock, memory, rest } = options

  const isDue = (drain: Drain): boolean =>
    clock.currentTimeMillisUnsafe() >=
    Math.max(rest.until, Math.min(drain.nextDeadline, drain.nextStored))

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
      yield* backlog.remove(seq)
      drain.window.gone(seq)
      drain.count--
      yield* gone
      memory.settled.delete(seq)
    }
    drain.release(seq)
    return gone !== undefined
  })

  /**
   * Ends what has passed its deadline in a backlog, where it is time to look.
   *
   * @param isWanted true once its endpoint takes something.
   */
  const look = Effect.fnUntraced(function* (drain: Drain, isWanted: () => boolean) {
    if (!isDue(drain)) return
    const now = clock.currentTimeMillisUnsafe()
    drain.nextStored = Number.POSITIVE_INFINITY
    drain.nextDeadline = 0
    let first = Number.POSITIVE_INFINITY
    let from = drain.window.below
    const consider = (message: StoredMsg) => {
      const delivery = deliveryIn(message)
      if (delivery === undefined || drain.window.has(message.seq) || isWanted()) return Effect.void
      if (delivery.deadline > now) {
        first = Math.min(first, delivery.deadline)
        return Effect.void
      }
      return Effect.map(end(drain, message, delivery), (isGone) => {
        if (!isGone) first = Math.min(first, now + endPause)
      })
    }
    while (!isWanted()) {
      const messages = yield* backlog.read(drain.to, from, batch.messages, batch.bytes)
      const last = messages.at(-1)
      if (last === undefined) {
        drain.nextDeadline = first
        break
      }
      from = last.seq + 1
      yield* Effect.forEach(messages, consider, { concurrency: 16, discard: true })
    }
    const done = clock.currentTimeMillisUnsafe()
    rest.until = done + 10 * (done - now)
  })
  return { isDue, look }
}
