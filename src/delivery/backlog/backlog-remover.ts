import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Place } from "../../domain/fact.ts"
import { placeOfSlot } from "../../domain/fact.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import { saveEnded, slotsOf } from "../recovery/remove-ended.ts"
import { eraseRecord } from "../retry/retry-records.ts"
import type { Backlog } from "./backlog.ts"
import type { BacklogPage } from "./backlog-page.ts"
import { isPacked, positionsIn } from "./backlog-page.ts"
import type { BacklogWriter } from "./backlog-writer.ts"
import type { Drain, HeldMessage } from "./drain.ts"

export interface BacklogRemoverOptions {
  readonly broker: Broker["Service"]
  readonly backlog: Pick<Backlog, "purge" | "remove">
  readonly writer: Pick<BacklogWriter, "isUnsure" | "purged">
  readonly memory: Pick<StreamMemory, "completed" | "recordedAttempts" | "stream">
  /** True while it is unknown whether the stream was truncated. Nothing is purged then. */
  readonly isDoubtful: () => boolean
}

/**
 * Removes the messages of backlogs whose deliveries have ended. Of messages that stay it stores what
 * has ended: the history's watermark passes the facts that tell it.
 */
export class BacklogRemover {
  readonly #options: BacklogRemoverOptions

  constructor(options: BacklogRemoverOptions) {
    this.#options = options
  }

  /** Removes finished messages, except those that a later purge will remove. */
  readonly clear = Effect.fnUntraced({ self: this }, function* (drain: Drain) {
    yield* this.purge(drain)
    yield* this.thin(drain, drain.window.finishedBehindUnreadable)
  })

  /** True while it is unknown what lies at the end of the backlog. */
  #isDoubtful({ to }: Drain): boolean {
    const { isDoubtful, writer } = this.#options
    return isDoubtful() || writer.isUnsure(endpointKey(to.tenant, to.endpoint))
  }

  readonly purge = Effect.fnUntraced({ self: this }, function* (drain: Drain) {
    const { below } = drain.window
    const gone = drain.window.finishedBelow(below)
    if (gone.length === 0 || this.#isDoubtful(drain)) return
    yield* this.#options.backlog.purge(drain.to, below)
    this.#options.writer.purged(endpointKey(drain.to.tenant, drain.to.endpoint), below)
    yield* this.#removed(drain, gone)
  })

  /**
   * Removes finished messages individually, because a purge cannot remove the message before them.
   *
   * @param finished their slots, by sequence.
   */
  readonly thin = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, finished: ReadonlyMap<number, ReadonlyArray<number>>) {
      const { backlog, memory } = this.#options
      if (finished.size === 0 || this.#isDoubtful(drain)) return
      const remove = ([seq, slots]: readonly [number, ReadonlyArray<number>]) =>
        // A truncated stream may hold another message at the sequence.
        backlog.remove(seq, ({ time }) =>
          slots.every((slot) => memory.completed.has(slot, time.getTime()))
        )
      yield* this.#removeReplaced(drain)
      yield* Effect.forEach(finished, remove, { concurrency: 16, discard: true })
      yield* this.#removed(drain, [...finished.values()].flat())
    }
  )

  /**
   * Called with deliveries whose messages were purged or removed. A replica that is behind may still
   * return a message that was removed individually, until reading has passed it. That its deliveries
   * have ended is remembered until then.
   */
  readonly #removed = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, gone: ReadonlyArray<number>) {
      const { completed, recordedAttempts } = this.#options.memory
      drain.window.purged(gone)
      drain.settled = Math.min(drain.settled, drain.window.finishedCount)
      drain.unpurged = Math.min(drain.unpurged, drain.window.finishedCount)
      const { passed } = drain.window
      const all = [...drain.deletedAhead, ...gone]
      for (const slot of all) if (slot < passed) completed.delete(slot)
      drain.deletedAhead = all.filter((slot) => slot >= passed)
      for (const seq of drain.replaced) if (seq < passed) drain.replaced.delete(seq)
      for (const slot of gone) {
        drain.endedAhead.delete(slot)
        recordedAttempts.delete(slot)
      }
      yield* drain.letGo(gone)
      for (const seq of new Set(gone.map(Math.floor))) {
        const { at, saved } = drain.held.get(seq) ?? {}
        drain.held.delete(seq)
        if (at !== undefined && saved !== undefined) yield* this.#erase({ seq, at })
      }
    }
  )

  /** Stores what has ended of messages that stay, so that the watermark may pass their facts. */
  readonly saveEnded = Effect.fnUntraced({ self: this }, function* (drain: Drain) {
    const { completed } = this.#options.memory
    for (const seq of drain.window.begun) {
      const held = drain.held.get(seq)
      if (held === undefined) continue
      const slots = slotsOf(seq, held).filter((slot) => completed.has(slot, held.at))
      const stored = new Set(held.saved?.ended)
      if (slots.every((slot) => stored.has(placeOfSlot(slot).entry ?? 0))) continue
      held.saved = yield* this.#save({ seq, at: held.at }, held)
      yield* drain.letGo(slots)
    }
    drain.settled = drain.window.finishedCount
  })

  /** Removes a message of which deliveries ended before they were read, or stores which did. */
  readonly endedEarly = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, page: BacklogPage, slots: ReadonlyArray<number>) {
      const { backlog, memory } = this.#options
      const { at, seq } = page
      const { completed } = memory
      const { window } = drain
      const all = positionsIn(page).map(({ slot }) => slot)
      const isOver = (slot: number) => completed.has(slot, at) && !window.isOpen(slot)
      if (all.every(isOver) && !this.#isDoubtful(drain)) {
        yield* this.#removeReplaced(drain)
        yield* backlog.remove(seq, ({ time }) => time.getTime() === at)
        return yield* this.#removed(drain, all)
      }
      // What stays and tells nothing of its end is removed once it has been read.
      if (!isPacked(page)) return
      const held = drain.heldOf(page)
      held.saved = yield* this.#save({ seq, at }, held)
      yield* drain.letGo(slots)
    }
  )

  /** Only the messages that replace them tell that they hold nothing of their own. */
  #removeReplaced({ replaced, to }: Drain) {
    const isOfEndpoint = ({ subject }: StoredMsg) =>
      subject.endsWith(`.${endpointKey(to.tenant, to.endpoint)}`)
    const remove = (seq: number) => this.#options.backlog.remove(seq, isOfEndpoint)
    return Effect.forEach(replaced, remove, { discard: true })
  }

  #save(of: Pick<Place, "at" | "seq">, held: HeldMessage) {
    const { broker, memory } = this.#options
    const place = { stream: memory.stream, ...of }
    const saved = saveEnded(memory.completed, place, held, held.saved)
    return Effect.provideService(saved, Broker, broker)
  }

  #erase(of: Pick<Place, "at" | "seq">): Effect.Effect<void> {
    const { broker, memory } = this.#options
    const place = { stream: memory.stream, ...of }
    return Effect.provideService(eraseRecord(place), Broker, broker)
  }
}
