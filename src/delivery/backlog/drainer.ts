import type { StoredMsg } from "@nats-io/jetstream"
import { Cause, type Clock, Effect } from "effect"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import type { Addressee, Delivery } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { timers } from "../../time/timers.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { LaneScheduler } from "../scheduling/lane-scheduler.ts"
import type { Backlog } from "./backlog.ts"
import type { BacklogIndex } from "./backlog-index.ts"
import type { BacklogMessage } from "./drain.ts"
import { Drain, deliveryIn } from "./drain.ts"
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
const searchBatch = { messages: 32, bytes: 128 * 1024 }
/** Messages at the start of a backlog that may have been in flight when the former owner died. */
const maxConcurrentReads = 32
/** Interval of the check for passed deadlines while an endpoint accepts nothing, ms. */
const expiryCheckMs = 1_000
/** Minimum finished messages for a purge while others are in flight. */
const minPurgedMessages = 64
/**
 * Pause before a read is repeated that found fewer messages than the backlog is known to have, ms.
 */
const rereadPauseMs = 100
const failurePauseMs = 1_000
/** Backlogs that are read, purged or searched at the same time. */
const maxConcurrentSteps = 64
/** Replicas that are further behind, ms, are no longer expected to answer reads. */
const maxReplicaLagMs = 10 * 60_000

export interface DrainerOptions {
  readonly backlog: Pick<Backlog, "isEmpty" | "list" | "purge" | "read" | "remove">
  readonly memory: StreamMemory
  readonly index: BacklogIndex
  /** Say how many deliveries an endpoint can take now, and reserve memory for them. */
  readonly lanes: Pick<LaneScheduler<never>, "awaitCapacity" | "rateBudget" | "reserve">
  /** Called with a delivery that was read: it has left the place from which it was moved. */
  readonly left: (delivery: Delivery) => void
  /** Puts a delivery into its endpoint's lane. */
  readonly begin: (key: string, handle: BacklogMessage) => void
  /** True once nothing may begin any more. */
  readonly closed: () => boolean
  /** True while it is unknown whether the stream was truncated. Nothing is purged then. */
  readonly isDoubtful: () => boolean
  /** Reports that the stream was truncated: it reused a sequence. */
  readonly streamTruncated: Effect.Effect<unknown>
  /** Ends a delivery whose deadline has passed. It was read and is not begun. */
  readonly expire: (handle: AckHandle) => Effect.Effect<void>
  readonly clock: Clock.Clock
  /** False while the clock may be wrong. */
  readonly isClockTrusted: () => boolean
  /** Limits the time that the searches of all the worker's backlogs take. */
  readonly dutyCycle: DutyCycle
  /** Runs an effect in the background until the partition is released. */
  readonly run: (work: Effect.Effect<void>) => void
}

/**
 * Drains the backlogs of a partition, each in order and at the pace of its endpoint's lane. A
 * message is purged only when its delivery has ended or waits elsewhere, up to the lowest
 * unfinished one.
 */
export class Drainer {
  readonly #options: DrainerOptions
  readonly #index: BacklogIndex
  readonly #expiry: ReturnType<typeof makeExpiry>
  readonly #scheduler: KeyedScheduler
  /** The highest unreadable message that was logged, by endpoint: it may be found again. */
  readonly #logged = new Map<string, number>()
  /** Backlogs whose failure was logged: it is logged once until a read succeeds. */
  readonly #failing = new Set<string>()

  constructor(options: DrainerOptions) {
    this.#options = options
    this.#index = options.index
    this.#expiry = makeExpiry({
      ...options,
      batch: searchBatch,
      keep: (drain, seq) => this.#keep(drain, seq)
    })
    this.#scheduler = new KeyedScheduler({
      atOnce: maxConcurrentSteps,
      work: (key) => this.#work(key),
      run: options.run
    })
  }

  /** True where an endpoint's backlog accepts no more messages. */
  isFull(key: string): boolean {
    return this.#index.isFull(key)
  }

  /**
   * Runs a store into an endpoint's backlog, and drains the new message after those that are there.
   *
   * @param store gets a sequence below that of any earlier try.
   */
  storing(
    to: Delivery,
    store: (after: number) => Effect.Effect<PubAck, PublishError>
  ): Effect.Effect<PubAck, PublishError> {
    let once: Effect.Effect<PubAck, PublishError> | undefined
    let after = 0
    return Effect.suspend(() => {
      const drain = this.#open(to)
      drain.storing++
      drain.count++
      after = once === undefined ? drain.last : after
      once ??= store(after)
      return once.pipe(
        Effect.tap(({ duplicate, seq }) => {
          drain.stored(seq, to)
          return !duplicate && seq <= after ? this.#options.streamTruncated : Effect.void
        }),
        Effect.tapError(() => Effect.sync(() => drain.count--)),
        Effect.ensuring(
          Effect.sync(() => {
            drain.storing--
            this.wake(endpointKey(to.tenant, to.endpoint))
          })
        )
      )
    })
  }

  /** Schedules work for an endpoint where there is some. Called when its lane may take more. */
  wake(key: string): void {
    const drain = this.#index.drains.get(key)
    if (drain === undefined) return
    const isPurgeDue = drain.window.finishedCount >= minPurgedMessages
    if (isPurgeDue || this.#wanted(key, drain) > 0) this.#scheduler.wake(key)
  }

  /** Does what is due by time. Called at a fixed interval. */
  tick(): void {
    // Only one search may run at a time, so only one drain is woken for it.
    let searches = false
    this.#scheduler.tick((key) => {
      const drain = this.#index.drains.get(key)
      if (drain === undefined) return true
      if (this.#wanted(key, drain) > 0 || drain.window.finishedCount > 0) return true
      if (searches || !this.#expiry.isDue(drain)) return false
      searches = true
      return true
    }, expiryCheckMs)
  }

  /** Takes back a delivery that was read and lost its position in its lane. */
  handBack(key: string, handle: AckHandle): void {
    this.#index.drains.get(key)?.forget(handle.place.seq, handle.delivery)
  }

  /**
   * Finds messages that waited when this owner began, and messages that a former owner stored
   * since.
   */
  get find() {
    const { drains, empty } = this.#index
    return Effect.map(this.#options.backlog.list, ({ last, waiting }) => {
      const counts = new Map(waiting.map((to) => [endpointKey(to.tenant, to.endpoint), to.count]))
      for (const [key, { at, unreadable }] of empty) {
        const isOld = timers.monotonicMs() - at > maxReplicaLagMs
        // Found empty lately: the messages are the same as then, and need not be read again.
        if (isOld && counts.get(key) !== unreadable.count) empty.delete(key)
      }
      for (const to of waiting) {
        const key = endpointKey(to.tenant, to.endpoint)
        const { count = 0 } = empty.get(key)?.unreadable ?? {}
        if (drains.has(key) || to.count === count) continue
        const drain = this.#open(to)
        drain.poisonCandidates = maxConcurrentReads
        drain.count = to.count - count
        drain.last = Math.max(drain.last, last)
      }
    })
  }

  /** Removes what has ended from the backlogs, also behind what has not. Nothing may be in flight. */
  get removeFinished() {
    return Effect.forEach(
      [...this.#index.drains.values()].filter(({ window }) => window.finishedCount > 0),
      (drain) => Effect.andThen(this.#purge(drain), () => this.#thin(drain, drain.window.finished)),
      { concurrency: maxConcurrentSteps, discard: true }
    )
  }

  #open(to: Addressee): Drain {
    const key = endpointKey(to.tenant, to.endpoint)
    const { drains, empty } = this.#index
    const open = drains.get(key)
    if (open !== undefined) return open
    const drain = new Drain(to, this.#options.memory, empty.get(key), () => this.wake(key))
    drains.set(key, drain)
    this.#scheduler.wake(key)
    return drain
  }

  #wanted(key: string, { window }: Drain): number {
    return Math.min(this.#options.lanes.rateBudget(key), window.room)
  }

  #work(key: string): Effect.Effect<NextTurn> {
    const drain = this.#index.drains.get(key)
    if (drain === undefined) return Effect.succeed("never")
    return this.#step(key, drain).pipe(
      Effect.tap(() => Effect.sync(() => this.#failing.delete(key))),
      Effect.catch((error) => this.#failed(key, error)),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) => Effect.as(Effect.logError(`draining ${key} met a defect`, cause), failurePauseMs)
      )
    )
  }

  #failed(key: string, error: Error): Effect.Effect<number> {
    if (this.#failing.has(key)) return Effect.succeed(failurePauseMs)
    this.#failing.add(key)
    const why = error.message
    return Effect.as(
      Effect.logWarning(`the backlog of ${key} cannot be read`, { why }),
      failurePauseMs
    )
  }

  /** Does one step of the work. Returns when the next step is due. */
  readonly #step = Effect.fnUntraced({ self: this }, function* (key: string, drain: Drain) {
    const { backlog, lanes } = this.#options
    const { to, window } = drain
    if (window.finishedCount >= minPurgedMessages) yield* this.#clear(drain)
    const wanted = this.#wanted(key, drain)
    if (wanted === 0) return yield* this.#whileIdle(key, drain)
    const from = window.next
    const reserved = lanes.reserve(key, batch.bytes)
    const messages = yield* backlog
      .read(to, from, wanted, reserved.bytes)
      .pipe(Effect.ensuring(Effect.sync(reserved.giveBack)))
    if (this.#options.closed()) return "never"
    window.found(
      from,
      messages.map(({ seq }) => seq)
    )
    for (const message of messages) yield* this.#take(key, drain, message)
    if (messages.length > 0) return this.#wanted(key, drain) > 0 ? "at once" : expiryCheckMs
    return (yield* this.#isDone(key, drain)) ? "never" : rereadPauseMs
  })

  /** What is done while the endpoint takes nothing. */
  readonly #whileIdle = Effect.fnUntraced({ self: this }, function* (key: string, drain: Drain) {
    const { window } = drain
    yield* this.#clear(drain)
    // Earlier messages are slow to finish: removing later ones makes room to read more.
    if (window.room === 0) yield* this.#thin(drain, window.finished)
    yield* this.#expiry.scan(drain, () => this.#wanted(key, drain) > 0)
    this.#options.lanes.awaitCapacity(key)
    return this.#wanted(key, drain) > 0 ? "at once" : this.#expiry.pause(drain, expiryCheckMs)
  })

  #take(key: string, drain: Drain, message: StoredMsg): Effect.Effect<void> {
    const { begin, left, memory } = this.#options
    const { seq } = message
    if (!drain.window.add(seq)) return Effect.void
    const delivery = deliveryIn(message)
    if (delivery === undefined) return this.#keep(drain, seq)
    if (memory.completed.has(seq, message.time.getTime())) {
      drain.finish(seq, Effect.void)
      return Effect.void
    }
    left(delivery)
    const handle = drain.hold(message, delivery)
    return Effect.sync(() => begin(key, handle)).pipe(
      Effect.onError(() => Effect.sync(() => drain.forget(seq, delivery)))
    )
  }

  /** Keeps an unreadable message in the backlog: the newer version that wrote it can deliver it. */
  #keep(drain: Drain, seq: number): Effect.Effect<void> {
    const { endpoint, tenant } = drain.to
    const key = endpointKey(tenant, endpoint)
    if (!drain.keep(seq) || seq <= (this.#logged.get(key) ?? 0)) return Effect.void
    this.#logged.set(key, seq)
    const where = { stream: this.#options.memory.stream, seq, tenant, endpoint }
    return Effect.logError("a message in a backlog is unreadable to this version: kept", where)
  }

  /** Removes finished messages, except those that a later purge will remove. */
  readonly #clear = Effect.fnUntraced({ self: this }, function* (drain: Drain) {
    yield* this.#purge(drain)
    yield* this.#thin(drain, drain.window.finishedBehindUnreadable)
  })

  readonly #purge = Effect.fnUntraced({ self: this }, function* (drain: Drain) {
    const { below } = drain.window
    const gone = drain.window.finishedBelow(below)
    if (gone.length === 0 || this.#options.isDoubtful()) return
    yield* this.#options.backlog.purge(drain.to, below)
    yield* this.#removed(drain, gone)
  })

  /**
   * Removes finished messages individually, because a purge cannot remove the message before them.
   */
  readonly #thin = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, finished: ReadonlyArray<number>) {
      const { backlog, isDoubtful, memory } = this.#options
      if (finished.length === 0 || isDoubtful()) return
      // A truncated stream may hold another message at the sequence.
      const hasEnded = ({ seq, time }: StoredMsg) => memory.completed.has(seq, time.getTime())
      yield* Effect.forEach(finished, (seq) => backlog.remove(seq, hasEnded), {
        concurrency: 16,
        discard: true
      })
      yield* this.#removed(drain, finished)
    }
  )

  /**
   * Called with messages that were purged or removed. A replica that is behind may still return a
   * message that was removed individually, until reading has passed it. Its completion is
   * remembered until then.
   */
  #removed(drain: Drain, gone: ReadonlyArray<number>): Effect.Effect<void> {
    drain.window.purged(gone)
    const { passed } = drain.window
    const all = [...drain.deletedAhead, ...gone]
    for (const seq of all) if (seq < passed) this.#options.memory.completed.delete(seq)
    drain.deletedAhead = all.filter((seq) => seq >= passed)
    return drain.letGo(gone)
  }

  /** Returns true once the leader has no readable message left, and closes the drain. */
  readonly #isDone = Effect.fnUntraced({ self: this }, function* (key: string, drain: Drain) {
    const isQuiet = () => drain.storing === 0 && drain.window.isFinished
    if (!isQuiet()) return false
    yield* this.#clear(drain)
    const { last } = drain
    const { next, unreadable } = drain.window
    const isEmpty = yield* this.#options.backlog.isEmpty(drain.to, next)
    const isCleared = drain.window.finishedCount === 0
    if (!isEmpty || !isCleared || drain.last !== last || !isQuiet()) return false
    const before = this.#index.empty.get(key)
    // Nothing was read since: it keeps its age.
    const at = before?.from === next ? before.at : timers.monotonicMs()
    this.#index.empty.set(key, { from: next, unreadable, at })
    this.#index.drains.delete(key)
    return true
  })
}
