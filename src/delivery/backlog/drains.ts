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

/** Maximum messages and body bytes per read. */
const batch = { messages: 256, bytes: 1024 * 1024 }
/**
 * The same for a search for deadlines: no delivery waits for it, but deliveries wait while it
 * reads.
 */
const piece = { messages: 32, bytes: 128 * 1024 }
/** Messages at the start of a backlog that may have been in flight when the former owner died. */
const maxConcurrentReads = 32
/** Interval of the check for passed deadlines while an endpoint accepts nothing, ms. */
const lookAgain = 1_000
/** Minimum finished messages for a purge while others are in flight. */
const minPurgedMessages = 64
/**
 * Pause before a read is repeated that found fewer messages than the backlog is known to have, ms.
 */
const rereadPause = 100
const failurePause = 1_000
/** Backlogs that are read, purged or searched at the same time. */
const stepsAtOnce = 64
/** Replicas that are further behind, ms, are no longer expected to answer reads. */
const staleFor = 10 * 60_000

/** The end of a backlog in which no readable message was left. */
interface Floor extends Beginning {
  /** When it was found empty, ms of the monotonic clock. */
  readonly at: number
}

/** Memory that is reserved for a read. */
export interface Reserved {
  readonly bytes: number
  readonly giveBack: () => void
}

export interface DrainsOptions {
  readonly backlog: Backlog
  readonly memory: StreamMemory
  /** Returns how many deliveries an endpoint's lane can take now. */
  readonly wants: (key: string) => number
  /** Asks to be woken when there is memory, where a lane lacks nothing else. */
  readonly awaitRoom: (key: string) => void
  /** Reserves memory for what is being read for a lane, up to `most` bytes. */
  readonly reserve: (key: string, most: number) => Reserved
  /** Called with a delivery that was read: it has left the place from which it was moved. */
  readonly left: (delivery: Delivery) => void
  /** Puts a delivery into its endpoint's lane. */
  readonly begin: (key: string, held: AckHandle) => void
  /** True while it is unknown whether the stream was truncated. Nothing is purged then. */
  readonly isDoubtful: () => boolean
  /** Reports that the stream was truncated: it reused a sequence. */
  readonly streamTruncated: Effect.Effect<unknown>
  /** Maximum messages of one backlog. */
  readonly most: number
  /** Ends a delivery whose deadline has passed. It was read and is not begun. */
  readonly expire: (held: AckHandle) => Effect.Effect<void>
  readonly clock: Clock.Clock
  /** Limits the time that the searches of all the worker's backlogs take. */
  readonly rest: DutyCycle
  /** Runs an effect in the background until the partition is released. */
  readonly run: (work: Effect.Effect<void>) => void
}

/**
 * Drains the backlogs of a partition, each in order and at the pace of its endpoint's lane. A
 * message is purged only when its delivery has ended or waits elsewhere, up to the lowest
 * unfinished one.
 */
export const makeDrains = (options: DrainsOptions) => {
  const { backlog, memory } = options
  const drains = new Map<string, Drain>()
  /**
   * Where reading continues in backlogs that were empty: a replica that is behind may still return
   * removed messages.
   */
  const floors = new Map<string, Floor>()
  /**
   * The sequence up to which unreadable messages were logged, by endpoint: they may be found again.
   */
  const logged = new Map<string, number>()

  /** Keeps an unreadable message in the backlog: the newer version that wrote it can deliver it. */
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
   * A replica that is behind may still return a message that was removed individually, until
   * reading has passed it. Its completion is remembered until then.
   */
  const forgetPassed = (drain: Drain, gone: ReadonlyArray<number>) => {
    const { passed } = drain.window
    const all = [...drain.deletedAhead, ...gone]
    for (const seq of all) if (seq < passed) memory.settled.delete(seq)
    drain.deletedAhead = all.filter((seq) => seq >= passed)
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

  /**
   * True where a message is finished. A truncated stream may hold another message at its sequence.
   */
  const hasEnded = (message: StoredMsg): boolean => {
    const delivery = deliveryIn(message)
    return delivery !== undefined && memory.settled.has(message.seq, delivery)
  }

  /**
   * Removes finished messages individually, because a purge cannot remove the message before them.
   */
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

  /** Removes finished messages, except those that a later purge will remove. */
  const clear = Effect.fnUntraced(function* (drain: Drain) {
    yield* purge(drain)
    yield* thin(drain, drain.window.finishedBehindUnreadable)
  })

  /** Returns true once the leader has no readable message left, and closes the drain. */
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
    // Nothing was read since: the floor keeps its age.
    const at = before?.from === next ? before.at : performance.now()
    floors.set(key, { from: next, unreadable, at })
    drains.delete(key)
    return true
  })

  const wanted = (key: string, { window }: Drain) => Math.min(options.wants(key), window.room)

  /** Does one step of the work. Returns when the next step is due. */
  const step = Effect.fnUntraced(function* (key: string, drain: Drain) {
    const { to, window } = drain
    if (window.finishedCount >= minPurgedMessages) yield* clear(drain)
    const now = wanted(key, drain)
    if (now === 0) {
      yield* clear(drain)
      // Earlier messages are slow to finish: removing later ones makes room to read more.
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

  /** Backlogs whose failure was logged: it is logged once until a read succeeds. */
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
  const keyedScheduler = new KeyedScheduler({ atOnce: stepsAtOnce, work, run: options.run })

  const open = (to: Addressee): Drain => {
    const key = endpointKey(to.tenant, to.endpoint)
    const known = drains.get(key)
    if (known !== undefined) return known
    const drain = new Drain(to, memory, floors.get(key), () => wake(key))
    drains.set(key, drain)
    keyedScheduler.wake(key)
    return drain
  }

  /** Schedules work for an endpoint where there is some. */
  const wake = (key: string) => {
    const drain = drains.get(key)
    if (drain === undefined) return
    const { finishedCount } = drain.window
    if (finishedCount >= minPurgedMessages || wanted(key, drain) > 0) keyedScheduler.wake(key)
  }

  return {
    /**
     * True while messages wait in an endpoint's backlog, or are being stored there. Unreadable
     * messages do not count: nothing has to wait behind them.
     */
    isBehind: (key: string): boolean => drains.has(key),

    /** True where an endpoint's backlog accepts no more messages. */
    isFull: (key: string): boolean => (drains.get(key)?.count ?? 0) >= options.most,

    /**
     * Runs a store into an endpoint's backlog, and drains the new message after those that are
     * there.
     */
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
              return !duplicate && seq <= after ? options.streamTruncated : Effect.void
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

    /** Returns the highest known sequence of the stream. */
    highest: (): number => {
      let highest = 0
      for (const { from } of floors.values()) highest = Math.max(highest, from - 1)
      for (const { last, window } of drains.values())
        highest = Math.max(highest, last, window.next - 1)
      return highest
    },

    /** Called when an endpoint's lane may take more. */
    wake,

    /** Does what is due by time. Called at a fixed interval. */
    tick: () => {
      // Only one search may run at a time, so only one drain is woken for it.
      let looks = false
      keyedScheduler.tick((key) => {
        const drain = drains.get(key)
        if (drain === undefined) return true
        if (wanted(key, drain) > 0 || drain.window.finishedCount > 0) return true
        if (looks || !expiry.isDue(drain)) return false
        looks = true
        return true
      }, lookAgain)
    },

    /** Takes back a delivery that was read and lost its position in its lane. */
    handBack: (key: string, held: AckHandle) => {
      drains.get(key)?.forget(held.place.seq, held.delivery)
    },

    /** Returns the number of unreadable messages in all backlogs, as far as they were read. */
    unreadable: (): number => {
      let count = 0
      for (const { window } of drains.values()) count += window.unreadable.count
      for (const [key, { unreadable }] of floors) if (!drains.has(key)) count += unreadable.count
      return count
    },

    /**
     * Finds messages that waited when this owner began, and messages that a former owner stored
     * since.
     */
    find: Effect.map(backlog.list, ({ last, waiting }) => {
      const counts = new Map(waiting.map((to) => [endpointKey(to.tenant, to.endpoint), to.count]))
      for (const [key, { at, unreadable }] of floors) {
        const isStale = performance.now() - at > staleFor
        // A young floor: the messages are those that were found before, and need not be read again.
        if (isStale && counts.get(key) !== unreadable.count) floors.delete(key)
      }
      for (const to of waiting) {
        const key = endpointKey(to.tenant, to.endpoint)
        const { count = 0 } = floors.get(key)?.unreadable ?? {}
        if (drains.has(key) || to.count === count) continue
        const drain = open(to)
        drain.poisonCandidates = maxConcurrentReads
        drain.count = to.count - count
        drain.last = Math.max(drain.last, last)
      }
    })
  }
}

export type Drains = ReturnType<typeof makeDrains>
