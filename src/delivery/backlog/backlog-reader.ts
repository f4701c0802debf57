import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { DeliveryReference, OriginStreams } from "../../domain/backlog-message.ts"
import { backlogEntriesIn, labelIn } from "../../domain/backlog-message.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { EventContents } from "../../domain/event.ts"
import { eventId } from "../../domain/event.ts"
import { slotOf } from "../../domain/fact.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import type { EventBodies } from "../bodies/event-bodies.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import { readEnded } from "../retry/retry-records.ts"
import type { Backlog } from "./backlog.ts"
import type { BacklogPage, BacklogPosition } from "./backlog-page.ts"
import { bodyBytes, isPacked, positionsIn } from "./backlog-page.ts"
import type { Drain } from "./drain.ts"

/** A delivery that was read from a backlog, and its body. */
export interface ReadDelivery {
  readonly position: BacklogPosition
  readonly delivery: Delivery
  readonly body: Uint8Array
}

/** What is known of a delivery whose event is gone. */
const goneContents = { type: "unknown", content: {}, body: new Uint8Array() } as const

/** Messages that were read from a backlog, in order. */
export interface BacklogPages {
  readonly pages: ReadonlyArray<BacklogPage>
  /** The sequence up to which they were read; 0 where there was nothing. */
  readonly through: number
  /** True where no message follows, as far as the answering replica knew. */
  readonly isWhole: boolean
}

export interface BacklogReaderOptions {
  readonly broker: Broker["Service"]
  readonly backlog: Pick<Backlog, "last" | "read" | "remove">
  readonly bodies: Pick<EventBodies, "read">
  readonly memory: Pick<StreamMemory, "completed" | "stream" | "unreadRecords">
  readonly streams: OriginStreams
  /** Returns the names of the publisher's headers that an endpoint gets. */
  readonly forwards: (key: string) => ReadonlyArray<string>
}

/** Reads backlogs: unpacks their messages, and gets the bodies of references from EVENTS. */
export class BacklogReader {
  readonly #options: BacklogReaderOptions

  constructor(options: BacklogReaderOptions) {
    this.#options = options
  }

  /** Reads messages from a sequence on, and which of their entries ended before this owner. */
  readonly pages = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, from: number, messages: number, bytes: number) {
      const found = yield* this.#options.backlog.read(drain.to, from, messages, bytes)
      const pages = found.map((message) => this.#unpack(message))
      for (const page of pages) {
        drain.seen = Math.max(drain.seen, page.seq)
        yield* this.#recallEnded(drain, page)
      }
      const through = pages.at(-1)?.seq ?? 0
      const isWhole = (found.at(-1)?.header.get("Nats-Num-Pending") ?? "0") === "0"
      drain.end = isWhole ? Math.max(through, from - 1) : undefined
      const result: BacklogPages = {
        ...{ through, isWhole },
        pages: pages.filter(({ seq }) => !drain.replaced.has(seq))
      }
      return result
    }
  )

  /** Gets the bodies of deliveries, in order. Those whose event is gone end for that reason. */
  readonly contents = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, positions: ReadonlyArray<BacklogPosition>) {
      const { tenant, endpoint } = drain.to
      const references = positions.flatMap(({ of }) =>
        of.entry === undefined ? [] : [of.reference]
      )
      const found =
        references.length === 0
          ? []
          : yield* this.#options.bodies.read(
              references,
              this.#options.forwards(endpointKey(tenant, endpoint))
            )
      let next = 0
      return positions.map((position): ReadDelivery => {
        const { of, page } = position
        if (of.entry === undefined) return { position, delivery: of.delivery, body: page.body }
        return { position, ...withContents(of.reference, found[next++] ?? "gone") }
      })
    }
  )

  /**
   * Removes what a former owner has replaced and not removed, and learns how many wait.
   *
   * @param isLate returns true for a message that a former owner stored after this one had begun:
   *   this one drains what such a message replaces, and passes over it there.
   */
  readonly look = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, isLate: (message: Pick<BacklogPage, "label" | "seq">) => boolean) {
      const { backlog } = this.#options
      const last = yield* backlog.last(drain.to)
      const label =
        last === null ? undefined : labelIn((name) => last.header.get(name) || undefined)
      const replaced = last === null || isLate({ seq: last.seq, label }) ? [] : label?.replaces
      // Known before the first is removed: where that fails, the last message is soon this owner's.
      for (const seq of replaced ?? []) drain.replaced.add(seq)
      for (const seq of replaced ?? [])
        yield* backlog.remove(seq, ({ subject }) => subject === last?.subject)
      drain.storedInAll = label?.stored
      drain.isUnseen = false
    }
  )

  /**
   * Reads the next deliveries, with their bodies: at most so many, and so many bytes. The caller adds
   * them to the window and then passes `readThrough`, the last sequence that was read as a whole: a
   * message of which deliveries were passed and not added would count as finished.
   */
  readonly next = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, wanted: number, bytes: number) {
      const { memory } = this.#options
      const { window } = drain
      const from = window.next
      const first = Math.floor(from)
      const { page } = drain
      const read =
        page?.seq === first
          ? { pages: [page], through: first }
          : yield* this.pages(drain, first, Math.ceil(wanted / drain.perMessage), bytes)
      const passed: Array<BacklogPosition | BacklogPage> = []
      const wantedNow: Array<BacklogPosition> = []
      let size = 0
      let isFull = false
      for (const each of read.pages) {
        if (isFull) break
        drain.page = each
        this.#count(drain, each)
        if (each.entries === undefined) passed.push(each)
        if (isPacked(each)) drain.heldOf(each)
        for (const position of positionsIn(each)) {
          const { slot } = position
          if (slot < from) continue
          if (window.has(slot) || memory.completed.has(slot, each.at)) {
            passed.push(position)
            continue
          }
          const more = bodyBytes(position)
          isFull = wantedNow.length === wanted || (size > 0 && size + more > bytes)
          if (isFull) break
          wantedNow.push(position)
          size += more
        }
        if (!isFull) drain.page = undefined
      }
      const deliveries = yield* this.contents(drain, wantedNow)
      const slots = [
        ...passed.map((of) => ("slot" in of ? of.slot : of.seq)),
        ...wantedNow.map(({ slot }) => slot)
      ]
      window.found(
        from,
        slots.toSorted((a, b) => a - b)
      )
      const isAnything = read.through > 0
      return { deliveries, passed, isAnything, readThrough: isFull ? 0 : read.through }
    }
  )

  /** Counts what waits, once the first message tells how many were stored before it. */
  #count(drain: Drain, { entries = [], label }: BacklogPage): void {
    drain.perMessage = Math.max(1, entries.length)
    if (drain.storedInAll !== undefined && label !== undefined)
      // A version that did not count may have written in between: each message holds one at least.
      drain.count += Math.max(0, drain.storedInAll - label.stored + entries.length - drain.messages)
    drain.storedInAll = undefined
  }

  #unpack({ data, header, seq, subject, time }: StoredMsg): BacklogPage {
    const get = (name: string) => header.get(name) || undefined
    return {
      ...{ seq, at: time.getTime(), body: data, label: labelIn(get) },
      entries: backlogEntriesIn(subject, get, this.#options.streams)
    }
  }

  /** Notes the entries of a message that ended before this owner, as far as that was stored. */
  readonly #recallEnded = Effect.fnUntraced(
    { self: this },
    function* (drain: Drain, page: BacklogPage) {
      const { at, seq } = page
      const { completed, stream, unreadRecords } = this.#options.memory
      if (!isPacked(page) || unreadRecords.get(seq) !== at) return
      const ended = Effect.provideService(
        readEnded({ stream, seq, at }),
        Broker,
        this.#options.broker
      )
      const saved = yield* ended
      for (const entry of saved.ended) completed.add(slotOf({ seq, entry }), at)
      drain.heldOf(page).saved = saved
      unreadRecords.delete(seq)
    }
  )
}

/** Makes a delivery of a reference. It ends where its event is gone. */
export const withContents = (
  { bytes: _, ...waiting }: DeliveryReference,
  contents: EventContents | "gone"
): Omit<ReadDelivery, "position"> => {
  if (contents !== "gone") {
    const { body, ...known } = contents
    return { delivery: { ...waiting, ...known }, body }
  }
  const { body, ...known } = goneContents
  const { eventAt, eventSeq, progress } = waiting
  const event = eventId(undefined, eventSeq, eventAt)
  const ends: DeadReason = progress.ends ?? "event-gone"
  return { delivery: { ...waiting, ...known, event, progress: { ...progress, ends } }, body }
}
