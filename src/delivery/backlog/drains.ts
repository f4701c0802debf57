import type { StoredMsg } from "@nats-io/jetstream"
import { Cause, type Clock, Effect } from "effect"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import type { Addressee, Backlog } from "./backlog.ts"
import { Drain, deliveryIn } from "./drain.ts"
import type { Beginning } from "./drain-window.ts"
import type { DutyCycle } from "./expiry.ts"
import { makeExpiry } from "./expiry.ts"
import type { NextTurn } from "./keyed-scheduler.ts"
import { KeyedScheduler } from "./keyed-scheduler.ts"

/** What is read at a time; bytes are those of bodies. */
const batch = { messages: 256, bytes: 1024 * 1024 }
/** The same where it is for deadlines only: nothing waits for it, and deliveries wait while it is read. */
const piece = { messages: 32, bytes: 128 * 1024 }
/** Unfinished at the head of a backlog, as many as may have been under way when its owner died. */
const maxConcurrentReads = 32
/** How often it is asked whether a deadline has passed while an endpoint takes nothing, ms. */
const lookAgain = 1_000
/** Finished messages that are worth a purge while more are under way. */
const minPurgedMessages = 64
/** Pause before a backlog is looked at again in which more is known to be than was found, ms. */
const rereadPause = 100
const failurePause = 1_000
/** Backlogs that are read, purged or looked through at the same time. */
const stepsAtOnce = 64
/** A copy that is behind by more, ms, is no longer read from. */
const staleFor = 10 * 60_000

/** A backlog in which nothing was left that can be read. */
interface Floor extends Beginning {
  /** When that was found, by the monotonic clock, ms. */
  readonly at: number
}

/** Room in memory that is set aside. */
export interface Reserved {
  readonly bytes: number
  readonly giveBack: () => void
}

export interface DrainsOptions {
  readonly backlog: Backlog
  readonly memory: StreamMemory
  /** How many deliveries an endpoint's lane has use for now. */
  readonly wants: (key: string) => number
  /** Asks to be woken when there is room in memory, where that is all a lane lacks. */
  readonly awaitRoom: (key: string) => void
  /** Sets room aside for what is being read for a lane, at most so many bytes. */
  readonly reserve: (key: string, most: number) => Reserved
  /** Told where a delivery was moved from: it has left that place. */
  readonly left: (delivery: Delivery) => void
  /** Gives a delivery to its endpoint's lane. */
  readonly begin: (key: string, held: AckHandle) => void
  /** True while it is not known whether the stream has lost what was stored last: nothing is purged. */
  readonly isDoubtful: () => boolean
  /** It has: it gave a sequence that it had given before. */
  readonly lostTail: Effect.Effect<unknown>
  /** Messages that one backlog takes. */
  readonly most: number
  /** Ends a delivery whose time is over; it was read and is not begun. */
  readonly expire: (held: AckHandle) => Effect.Effect<void>
  readonly clock: Clock.Clock
  /** Shared by all backlogs that one worker looks through. */
  readonly rest: DutyCycle
  /** Runs until the partition is given up. */
  readonly run: (work: Effect.Effect<void>) => void
}

/**
 * Drains the backlogs of a partition: each in order, at the pace of its endpoint's lane. What is
 * read ends or waits elsewhere; only then it is purged, up to the lowest that is unfinished.
 */
export const makeDrains = (options: DrainsOptions) => {
  const { backlog, memory } = options
  const drains = new Map<string, Drain>()
  /** Where to read on in backlogs that were empty: a copy that is behind may still show what was in them. */
  const floors = new Map<string, Floor>()
  /** Up to which sequence it is logged what is unreadable, by endpoint: it may be found again. */
  const logged = new Map<string, number>()

  /** Leaves a message where it is: the newer version that wrote it can deliver it. */
  const keep = (drain: Drain, seq: number) => {
    const { endpoint, tenant } = drain.to
    const key = endpointKey(tenant, endpoint)
    if (!drain.keep(seq) || seq <= (logged.get(key) ?? 0)) return Effect.void
    logged.set(key, seq)
    const where = { stream: memory.stream, seq, tenant, endpoint }
    return Effect.logError("a message in a backlog is unreadable to this version: kept", where)
  }
  const expiry = makeExpiry({ ...options, batch: piece, keep })

  const take = (key: string, drain: Drain, message: StoredMsg) => {
    const { seq } = message
    if (!drain.window.add(seq)) return Effect.void
    const delivery = deliveryIn(message)
    if (delivery === undefined) return keep(drain, seq)
    if (memory.settled.has(seq, delivery)) {
      drain.finish(seq, Effect.void)
      return Effect.void
    }
    options.left(delivery)
    const held = drain.hold(message, delivery)
    return Effect.sync(() => options.begin(key, held)).pipe(
      Effect.onError(() => Effect.sync(() => drain.forget(seq, delivery)))
    )
  }

  /**
   * One that was taken out alone may still be read from a copy that is behind, until the drain has
   * passed it.
   */
  const forgetPassed = (drain: Drain, gone: ReadonlyArray<number>) => {
    const { passed } = drain.window
    const all = [...drain.thinned, ...gone]
    for (const seq of all) if (seq < passed) memory.settled.delete(seq)
    drain.thinned = all.filter((seq) => seq >= passed)
  }

  const purge = Effect.fnUntraced(function* (drain: Drain) {
    const { below } = drain.window
    const gone = drain.window.finishedBelow(below)
    if (gone.length === 0 || options.isDoubtful()) return
    yield* backlog.purge(drain.to, below)
    drain.window.purged(gone)
    forgetPassed(drain, gone)
    yield* drain.letGo(gone)
  })

  /** A message that is finished, and not another one that a stream which lost its end has at its sequence. */
  const hasEnded = (message: StoredMsg): boolean => {
    const delivery = deliveryIn(message)
    return delivery !== undefined && memory.settled.has(message.seq, delivery)
  }

  /** Takes finished messages out one by one, because no purge may remove what is before them. */
  const thin = Effect.fnUntraced(function* (drain: Drain, finished: ReadonlyArray<number>) {
    if (finished.length === 0 || options.isDoubtful()) return
    yield* Effect.forEach(finished, (seq) => backlog.remove(seq, hasEnded), {
      concurrency: 16,
      discard: true
    })
    drain.window.purged(finished)
    forgetPassed(drain, finished)
    yield* drain.letGo(finished)
  })

  /** Removes what is finished, but for what waits only for those before it to be finished. */
  const clear = Effect.fnUntraced(function* (drain: Drain) {
    yield* purge(drain)
    yield* thin(drain, drain.window.finishedBehindUnreadable)
  })

  /** True once nothing is left that can be read, as the leader knows it. */
  const isDone = Effect.fnUntraced(function* (key: string, drain: Drain) {
    const isQuiet = () => drain.storing === 0 && drain.window.isFinished
    if (!isQuiet()) return false
    yield* clear(drain)
    const { last } = drain
    const { next, unreadable } = drain.window
    const empty = yield* backlog.isEmpty(drain.to, next)
    const isCleared = drain.window.finishedCount === 0
    if (!empty || !isCleared || drain.last !== last || !isQuiet()) return false
    const before = floors.get(key)
    // Where nothing has been read since, it is as old as it was.
    const at = before?.from === next ? before.at : performance.now()
    floors.set(key, { from: next, unreadable, at })
    drains.delete(key)
    return true
  })

  const wanted = (key: string, { window }: Drain) => Math.min(options.wants(key), window.room)

  /** A piece of the way; a number where nothing can be done for so many ms. */
  const step = Effect.fnUntraced(function* (key: string, drain: Drain) {
    const { to, window } = drain
    if (window.finishedCount >= minPurgedMessages) yield* clear(drain)
    const now = wanted(key, drain)
    if (now === 0) {
      yield* clear(drain)
      // What is before them takes long: without them, others can be read.
      if (window.room === 0) yield* thin(drain, window.finished)
      yield* expiry.look(drain, () => wanted(key, drain) > 0)
      options.awaitRoom(key)
      return wanted(key, drain) > 0 ? "at once" : expiry.pause(drain, lookAgain)
    }
    const from = window.next
    const reserved = options.reserve(key, batch.bytes)
    const messages = yield* backlog
      .read(to, from, now, reserved.bytes)
      .pipe(Effect.ensuring(Effect.sync(reserved.giveBack)))
    window.found(
      from,
      messages.map(({ seq }) => seq)
    )
    for (const message of messages) yield* take(key, drain, message)
    if (messages.length > 0) return wanted(key, drain) > 0 ? "at once" : lookAgain
    return (yield* isDone(key, drain)) ? "never" : rereadPause
  })

  /** Said once until they can be read again. */
  const failing = new Set<string>()
  const work = (key: string): Effect.Effect<NextTurn> => {
    const drain = drains.get(key)
    if (drain === undefined) return Effect.succeed("never")
    return step(key, drain).pipe(
      Effect.tap(() => Effect.sync(() => failing.delete(key))),
      Effect.catch((error) =>
        Effect.gen(function* () {
          if (!failing.has(key))
            yield* Effect.logWarning(`the backlog of ${key} cannot be read`, { why: error.message })
          failing.add(key)
          return failurePause
        })
      ),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) => Effect.as(Effect.logError(`draining ${key} met a defect`, cause), failurePause)
      )
    )
  }
  const rota = new KeyedScheduler({ atOnce: stepsAtOnce, work, run: options.run })

  const open = (to: Addressee): Drain => {
    const key = endpointKey(to.tenant, to.endpoint)
    const known = drains.get(key)
    if (known !== undefined) return known
    const drain = new Drain(to, memory, floors.get(key), () => wake(key))
    drains.set(key, drain)
    rota.wake(key)
    return drain
  }

  /** Begins to work for an endpoint where there is something to do. */
  const wake = (key: string) => {
    const drain = drains.get(key)
    if (drain === undefined) return
    const { finishedCount } = drain.window
    if (finishedCount >= minPurgedMessages || wanted(key, drain) > 0) rota.wake(key)
  }

  return {
    /**
     * True while something waits in an endpoint's backlog, or is being stored there. Unreadable messages
     * do not count: nothing has to wait behind them.
     */
    isBehind: (key: string): boolean => drains.has(key),

    /** True where an endpoint's backlog takes no more. */
    isFull: (key: string): boolean => (drains.get(key)?.count ?? 0) >= options.most,

    /** What is stored in an endpoint's backlog stands behind what is there, and is drained after it. */
    storing: (
      to: Delivery,
      store: (after: number) => Effect.Effect<PubAck, PublishError>
    ): Effect.Effect<PubAck, PublishError> => {
      let once: Effect.Effect<PubAck, PublishError> | undefined
      let after = 0
      return Effect.suspend(() => {
        const drain = open(to)
        drain.storing++
        drain.count++
        after = once === undefined ? drain.last : after
        once ??= store(after)
        return once.pipe(
          Effect.tap(({ duplicate, seq }) =>
            Effect.suspend(() => {
              drain.last = Math.max(drain.last, seq)
              drain.nextStored = Math.min(drain.nextStored, to.deadline)
              return !duplicate && seq <= after ? options.lostTail : Effect.void
            })
          ),
          Effect.tapError(() => Effect.sync(() => drain.count--)),
          Effect.ensuring(
            Effect.sync(() => {
              drain.storing--
              wake(endpointKey(to.tenant, to.endpoint))
            })
          )
        )
      })
    },

    /** The highest sequence of the stream that is known. */
    highest: (): number => {
      let highest = 0
      for (const { from } of floors.values()) highest = Math.max(highest, from - 1)
      for (const { last, window } of drains.values())
        highest = Math.max(highest, last, window.next - 1)
      return highest
    },

    /** An endpoint's lane may have use for more. */
    wake,

    /** What time does: to be called again and again. */
    tick: () => {
      // One may look at a time: the others need not be woken to find that out.
      let looks = false
      rota.tick((key) => {
        const drain = drains.get(key)
        if (drain === undefined) return true
        if (wanted(key, drain) > 0 || drain.window.finishedCount > 0) return true
        if (looks || !expiry.isDue(drain)) return false
        looks = true
        return true
      }, lookAgain)
    },

    /** A delivery that was read has no place in its lane any more. */
    handBack: (key: string, held: AckHandle) => {
      drains.get(key)?.forget(held.place.seq, held.delivery)
    },

    /** Messages of all backlogs that are unreadable to this version, as far as they have been read. */
    unreadable: (): number => {
      let count = 0
      for (const { window } of drains.values()) count += window.unreadable.count
      for (const [key, { unreadable }] of floors) if (!drains.has(key)) count += unreadable.count
      return count
    },

    /** Finds what waited when this owner began, and what a former one has stored since. */
    find: Effect.map(backlog.list, ({ last, waiting }) => {
      const counts = new Map(waiting.map((to) => [endpointKey(to.tenant, to.endpoint), to.count]))
      for (const [key, { at, unreadable }] of floors) {
        const isStale = performance.now() - at > staleFor
        // Else what is there is what was found, and is not read once more.
        if (isStale && counts.get(key) !== unreadable.count) floors.delete(key)
      }
      for (const to of waiting) {
        const key = endpointKey(to.tenant, to.endpoint)
        const { count = 0 } = floors.get(key)?.unreadable ?? {}
        if (drains.has(key) || to.count === count) continue
        const drain = open(to)
        drain.suspects = maxConcurrentReads
        drain.count = to.count - count
        drain.last = Math.max(drain.last, last)
      }
    })
  }
}

export type Drains = ReturnType<typeof makeDrains>
