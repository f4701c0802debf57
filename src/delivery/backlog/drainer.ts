import { Cause, type Clock, Effect } from "effect"
import type { PublishError } from "../../broker/publication.ts"
import type { Addressee, Delivery } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { slotOf } from "../../domain/fact.ts"
import { timers } from "../../time/timers.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { LaneScheduler } from "../scheduling/lane-scheduler.ts"
import type { Backlog } from "./backlog.ts"
import type { LastMessage } from "./backlog-end.ts"
import type { BacklogIndex } from "./backlog-index.ts"
import type { BacklogPage, BacklogPosition } from "./backlog-page.ts"
import { placeIn } from "./backlog-page.ts"
import type { BacklogReader, ReadDelivery } from "./backlog-reader.ts"
import type { BacklogRemover } from "./backlog-remover.ts"
import type { Stored } from "./backlog-write.ts"
import type { BacklogWriter } from "./backlog-writer.ts"
import type { BacklogMessage } from "./drain.ts"
import { Drain } from "./drain.ts"
import type { DutyCycle } from "./expiry.ts"
import { Expiry } from "./expiry.ts"
import type { NextTurn } from "./keyed-scheduler.ts"
import { KeyedScheduler } from "./keyed-scheduler.ts"
import type { LateMessagesOptions, ReadStanding } from "./late-messages.ts"
import { LateMessages } from "./late-messages.ts"

/** Maximum messages and body bytes per read. */
const batch = { messages: 256, bytes: 1024 * 1024 }
/**
 * The same for a search for deadlines: no delivery waits for it, but deliveries wait while it
 * reads.
 */
const searchBatch = { messages: 32, bytes: 128 * 1024 }
/** Deliveries at the start of a backlog that may have been in flight when the former owner died. */
const maxPoisonCandidates = 32
/** Interval of the check for passed deadlines while an endpoint accepts nothing, ms. */
const expiryCheckMs = 1_000
/** Minimum finished deliveries for a purge while others are in flight. */
const minPurged = 64

const isPurgeDue = ({ settled, unpurged, window }: Drain): boolean =>
  window.finishedCount >= Math.max(settled, unpurged) + minPurged

/**
 * How long an endpoint accepts nothing until it is stored which entries of a message that stays have
 * ended, ms. Until then the history's watermark stays below their facts.
 */
const saveEndedAfterMs = 5_000
/**
 * Pause before a read is repeated that found fewer messages than the backlog is known to have, ms.
 */
const rereadPauseMs = 100
const failurePauseMs = 1_000
/**
 * Backlogs of a partition that are worked on at the same time. A read may reserve 1 MiB: with more of
 * them, reads alone would use so much of their tenant's memory that each reads one delivery. Fewer of
 * one tenant among others: what comes of their reads in one turn of the event loop keeps all waiting.
 */
const concurrentSteps = { all: 8, ofTenant: 2 }
/** Backlogs from which what has ended is removed at the same time, as a partition passes on. */
const maxConcurrentRemovals = 64
/** Replicas that are further behind, ms, are no longer expected to answer reads. */
const maxReplicaLagMs = 10 * 60_000

export interface DrainerOptions extends LateMessagesOptions {
  readonly backlog: Pick<Backlog, "isEmpty" | "list">
  readonly remover: Pick<BacklogRemover, "clear" | "endedEarly" | "purge" | "saveEnded" | "thin">
  readonly reader: Pick<BacklogReader, "contents" | "look" | "next" | "pages">
  readonly writer: Pick<BacklogWriter, "closed" | "opened" | "standing">
  readonly memory: StreamMemory
  readonly index: BacklogIndex
  /** Say how many deliveries an endpoint can take now, and reserve memory for them. */
  readonly lanes: Pick<LaneScheduler<never>, "awaitCapacity" | "readBudget" | "reserve">
  /** Called with a delivery that was read: it has left the place from which it was moved. */
  readonly left: (delivery: Delivery) => void
  /** Puts a delivery into its endpoint's lane. */
  readonly begin: (key: string, handle: BacklogMessage) => void
  /** True where several tenants have endpoints. */
  readonly hasOtherTenants: () => boolean
  /** True once nothing may begin any more. */
  readonly closed: () => boolean
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
 * message is purged only when all its deliveries have ended or were moved, up to the lowest
 * unfinished one.
 */
export class Drainer {
  readonly #options: DrainerOptions
  readonly #index: BacklogIndex
  readonly #late: LateMessages
  readonly #expiry: Expiry
  readonly #scheduler: KeyedScheduler
  /** The highest unreadable message that was logged, by endpoint: it may be found again. */
  readonly #logged = new Map<string, number>()
  /** Backlogs whose failure was logged: it is logged once until a read succeeds. */
  readonly #failing = new Set<string>()

  constructor(options: DrainerOptions) {
    this.#options = options
    this.#index = options.index
    this.#late = new LateMessages(options)
    this.#expiry = new Expiry({
      ...options,
      batch: searchBatch,
      keep: (drain, seq) => this.#keep(drain, seq),
      ended: (drain, page, slots) => options.remover.endedEarly(drain, page, slots),
      standing: (to, read) => this.#late.standing(to, read)
    })
    this.#scheduler = new KeyedScheduler({
      atOnce: concurrentSteps.all,
      atOnceOfTenant: () =>
        options.hasOtherTenants() ? concurrentSteps.ofTenant : concurrentSteps.all,
      work: (key) => this.#work(key),
      run: options.run
    })
  }

  /** True where an endpoint's backlog does not accept a delivery. */
  isFull(key: string, delivery: Delivery): boolean {
    return this.#index.isFull(key, delivery)
  }

  /** Runs a store into an endpoint's backlog, and drains it after those that are there. */
  storing(
    to: Delivery,
    store: Effect.Effect<Stored, PublishError>
  ): Effect.Effect<Stored, PublishError> {
    return Effect.suspend(() => {
      const drain = this.#open(to)
      drain.storing++
      drain.count++
      return store.pipe(
        Effect.tap(({ after, seq }) => {
          drain.stored(seq, to)
          return 0 < seq && seq <= after ? this.#options.streamTruncated : Effect.void
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
    if (isPurgeDue(drain) || this.#wanted(key, drain) > 0) this.#scheduler.wake(key)
  }

  /** True where nothing has been read from a sequence on, so that other messages may be there. */
  mayReplace(key: string, from: number): boolean {
    const drain = this.#index.drains.get(key)
    return drain !== undefined && drain.reading === 0 && from > drain.seen
  }

  /** Called when messages are about to be replaced. Nothing is read until `replaced` or `kept`. */
  replacing(key: string): void {
    const drain = this.#index.drains.get(key)
    if (drain !== undefined) drain.replacing++
  }

  /** Called when the entries of messages are in another one that follows. */
  replaced(key: string, seqs: ReadonlyArray<number>): void {
    for (const seq of seqs) this.#index.drains.get(key)?.replaced.add(seq)
    this.kept(key)
  }

  /**
   * Called with the last message of a backlog that this owner is about to write after. Returns the
   * messages that it replaces, and that are not read from here on.
   */
  leftBehind(key: string, last: LastMessage): ReadonlyArray<number> {
    const drain = this.#index.drains.get(key)
    if (drain === undefined || last.label === undefined || this.#late.has(last)) return []
    for (const seq of last.label.replaces) drain.replaced.add(seq)
    return last.label.replaces
  }

  /** Called when nothing was replaced after all. */
  kept(key: string): void {
    const drain = this.#index.drains.get(key)
    if (drain === undefined) return
    drain.replacing--
    this.#scheduler.wake(key)
  }

  /** Does what is due by time. Called at a fixed interval. */
  tick(): void {
    // Only one search may run at a time, so only one drain is woken for it.
    let searches = false
    this.#scheduler.tick((key) => {
      const drain = this.#index.drains.get(key)
      if (drain === undefined) return true
      if (this.#wanted(key, drain) > 0) return true
      if (drain.window.finishedCount > drain.settled) return true
      if (searches || drain.isReadThrough || !this.#expiry.isDue(drain)) return false
      searches = true
      return true
    }, expiryCheckMs)
  }

  /** Takes back a delivery that was read and lost its position in its lane. */
  handBack(key: string, handle: AckHandle): void {
    this.#index.drains.get(key)?.forget(slotOf(handle.place), handle.delivery)
  }

  /**
   * Finds messages that waited when this owner began, and messages that a former owner stored
   * since.
   */
  get find() {
    const { drains, empty } = this.#index
    const list = Effect.tap(this.#options.backlog.list, ({ last }) => this.#late.begin(last))
    return Effect.map(list, ({ last, waiting }) => {
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
        const drain = this.#open(to, to.count - count)
        drain.poisonCandidates = maxPoisonCandidates
        drain.last = Math.max(drain.last, last)
      }
    })
  }

  /**
   * Removes what has ended from the backlogs, also behind what has not, and stores what has ended of
   * the messages that stay. Nothing may be in flight.
   */
  get removeFinished() {
    return Effect.forEach(
      [...this.#index.drains.values()].filter(({ window }) => window.finishedCount > 0),
      (drain) =>
        this.#options.remover.purge(drain).pipe(
          Effect.andThen(() => this.#options.remover.thin(drain, drain.window.finished)),
          Effect.andThen(() => this.#options.remover.saveEnded(drain))
        ),
      { concurrency: maxConcurrentRemovals, discard: true }
    )
  }

  /** @param messages that were found in the backlog. (Default: it was empty) */
  #open(to: Addressee, messages = 0): Drain {
    const key = endpointKey(to.tenant, to.endpoint)
    const { drains, empty } = this.#index
    const open = drains.get(key)
    if (open !== undefined) return open
    const before = empty.get(key)
    const drain = new Drain(to, this.#options.memory, before, messages, () => this.wake(key))
    // Unreadable messages may lie at its end.
    const isEmpty = messages === 0 && (before?.unreadable.count ?? 0) === 0
    this.#options.writer.opened(key, isEmpty ? 0 : undefined)
    drains.set(key, drain)
    this.#scheduler.wake(key)
    return drain
  }

  #wanted(key: string, { isReadThrough, largestBody, window }: Drain): number {
    if (isReadThrough && !window.isFinished) return 0
    const bytes = largestBody === 0 ? undefined : largestBody
    return Math.min(this.#options.lanes.readBudget(key, bytes), window.capacity)
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
    const { lanes, reader, remover } = this.#options
    const { window } = drain
    if (drain.replacing > 0) return "never"
    if (drain.isUnseen) yield* reader.look(drain, (message) => this.#late.has(message))
    if (isPurgeDue(drain)) {
      yield* remover.clear(drain)
      drain.unpurged = window.finishedCount
    }
    const wanted = this.#wanted(key, drain)
    if (wanted === 0) return yield* this.#whileIdle(key, drain)
    // That may have begun since this step did.
    if (drain.replacing > 0) return "never"
    drain.idleSince = undefined
    if (drain.isReadThrough) {
      drain.end = undefined
      return (yield* this.#isDone(key, drain)) ? "never" : "at once"
    }
    const reserved = lanes.reserve(key, drain.bytesFor(wanted, batch.bytes))
    drain.reading++
    const read = yield* reader.next(drain, wanted, reserved.bytes).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          drain.reading--
          reserved.giveBack()
        })
      )
    )
    for (const { body } of read.deliveries)
      drain.largestBody = Math.max(drain.largestBody, body.length)
    const standingOf = yield* this.#late.standing(drain.to, read.deliveries)
    if (this.#options.closed()) return "never"
    for (const position of read.passed) yield* this.#pass(drain, position)
    for (const delivery of read.deliveries) yield* this.#take(key, drain, delivery, standingOf)
    if (read.readThrough > 0) window.pass(read.readThrough + 1)
    if (read.isAnything) return this.#wanted(key, drain) > 0 ? "at once" : expiryCheckMs
    return (yield* this.#isDone(key, drain)) ? "never" : rereadPauseMs
  })

  /** What is done while the endpoint takes nothing. */
  readonly #whileIdle = Effect.fnUntraced({ self: this }, function* (key: string, drain: Drain) {
    const { remover } = this.#options
    const { window } = drain
    drain.page = undefined
    yield* remover.clear(drain)
    // Earlier messages are slow to finish: after later ones are removed, more can be read.
    if (window.capacity === 0) yield* remover.thin(drain, window.finished)
    const now = timers.monotonicMs()
    drain.idleSince ??= now
    if (window.finishedCount > drain.settled && now - drain.idleSince >= saveEndedAfterMs)
      yield* remover.saveEnded(drain)
    if (!drain.isReadThrough) yield* this.#expiry.scan(drain, () => this.#wanted(key, drain) > 0)
    this.#options.lanes.awaitCapacity(key)
    return this.#wanted(key, drain) > 0 ? "at once" : this.#expiry.pause(drain, expiryCheckMs)
  })

  /** Passes what was read before, or has ended, or cannot be read. */
  #pass(drain: Drain, of: BacklogPosition | BacklogPage): Effect.Effect<void> {
    if (!("slot" in of)) {
      drain.window.add(of.seq)
      return this.#keep(drain, of.seq)
    }
    const { next, page, slot } = of
    const hasEnded = this.#options.memory.completed.has(slot, page.at)
    if (hasEnded && drain.window.add(slot, next)) drain.finish(slot, Effect.void)
    return Effect.void
  }

  #take(
    key: string,
    drain: Drain,
    read: ReadDelivery,
    standingOf: (read: ReadDelivery) => ReadStanding
  ): Effect.Effect<void> {
    const { begin, left } = this.#options
    const { body, delivery, position } = read
    const { next, slot } = position
    if (!drain.window.add(slot, next)) return Effect.void
    const found = standingOf(read)
    if (found === "unknown") return Effect.sync(() => drain.giveBack(position, delivery))
    if (found === "handled") {
      drain.finish(slot, Effect.void)
      return Effect.logInfo("a former owner stored a delivery late: it is known", {
        stream: this.#options.memory.stream,
        ...placeIn(position)
      })
    }
    // From here on it is known, also where its lane gives it back.
    this.#late.adopt(position)
    left(delivery)
    const handle = drain.hold(placeIn(position), delivery, body)
    return Effect.sync(() => begin(key, handle)).pipe(
      Effect.onError(() => Effect.sync(() => drain.forget(slot, delivery)))
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

  /** Returns true once the leader has no readable message left, and closes the drain. */
  readonly #isDone = Effect.fnUntraced({ self: this }, function* (key: string, drain: Drain) {
    const isQuiet = () => drain.storing === 0 && drain.window.isFinished
    if (!isQuiet()) return false
    yield* this.#options.remover.clear(drain)
    const { last } = drain
    const { next, unreadable } = drain.window
    const isEmpty = yield* this.#options.backlog.isEmpty(drain.to, Math.floor(next))
    const isCleared = drain.window.finishedCount === 0
    if (!isEmpty || !isCleared || drain.last !== last || !isQuiet()) return false
    const before = this.#index.empty.get(key)
    // Nothing was read since: it keeps its age.
    const at = before?.from === next ? before.at : timers.monotonicMs()
    this.#index.empty.set(key, { from: next, unreadable, at, last: this.#index.highestOf(key) })
    this.#index.drains.delete(key)
    this.#options.writer.closed(key)
    return true
  })
}
