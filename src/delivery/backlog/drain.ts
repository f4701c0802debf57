import { Effect } from "effect"
import { waitingIn } from "../../domain/backlog-message.ts"
import type { Addressee, Delivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { slotOf } from "../../domain/fact.ts"
import { timers } from "../../time/timers.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { PendingAppend } from "../recovery/completed-deliveries.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { HeldEntries } from "../recovery/remove-ended.ts"
import { heldIn } from "../recovery/remove-ended.ts"
import type { StoredEnds } from "../retry/retry-records.ts"
import type { BacklogPage, BacklogPosition } from "./backlog-page.ts"
import { placeIn } from "./backlog-page.ts"
import type { Beginning } from "./drain-window.ts"
import { DrainWindow } from "./drain-window.ts"

/**
 * Delivery count assumed for a delivery that may have crashed a former owner: no consumer counts
 * deliveries here.
 */
const suspectCount = 100

/**
 * Minimum memory that is reserved for a read, bytes: no body of the backlog may be known yet. A read
 * returns at least one delivery, so one that is larger exceeds it, and counts once it is in its lane.
 */
const minReservedBytes = 64 * 1024

/** Pause before a delivery is read again that could not be decided about, ms. */
const undecidedPauseMs = 100

/** A delivery that was read from a backlog. */
export class BacklogMessage implements AckHandle {
  readonly place: Place
  readonly delivery: Delivery
  readonly body: Uint8Array
  readonly deliveryCount: number
  readonly #drain: Drain
  #isGivenBack = false

  constructor(
    drain: Drain,
    place: Place,
    delivery: Delivery,
    body: Uint8Array,
    deliveryCount: number
  ) {
    this.#drain = drain
    this.place = place
    this.delivery = delivery
    this.body = body
    this.deliveryCount = deliveryCount
  }

  ack(erase: Effect.Effect<void>): Effect.Effect<void> {
    this.#drain.finish(slotOf(this.place), erase)
    return Effect.void
  }

  nak(delayMs: number): void {
    if (this.#isGivenBack) return
    this.#isGivenBack = true
    const giveBack = () => this.#drain.forget(slotOf(this.place), this.delivery)
    timers.after(Math.max(1, delayMs), giveBack).unref()
  }
}

/** Progress of a search for passed deadlines. */
interface ScanCursor {
  /** The sequence where the search continues. */
  readonly from: number
  /** The earliest deadline found that has not passed, ms since the epoch. */
  readonly first: number
}

/** A message of references that was read, or of which some have ended. */
export interface HeldMessage extends HeldEntries {
  /** When it was stored, ms since the epoch. */
  readonly at: number
  /** Which of its entries are stored as ended; undefined for none. */
  saved: StoredEnds | undefined
}

/**
 * One endpoint's backlog, from the first delivery stored there until no readable one is left.
 */
export class Drain {
  readonly to: Addressee
  readonly window: DrainWindow
  /** Number of deliveries that are being stored. */
  storing = 0
  /** Number of deliveries in the backlog that have not ended, without unreadable messages. */
  count = 0
  /** The last sequence known to be stored. Messages that are being stored come after it. */
  last = 0
  /** The last sequence that this owner has stored. */
  #written = 0
  /** The sequence after which a reading found nothing; undefined where messages may follow. */
  end: number | undefined
  /** How many of the next deliveries may have crashed a former owner. */
  poisonCandidates = 0
  /**
   * No deadline among the deliveries of the last search passes before this time, ms since the epoch.
   */
  nextDeadline = 0
  /** The search for passed deadlines that is in progress. */
  scan: ScanCursor | undefined
  /**
   * The earliest deadline among deliveries stored or given back since the last search, ms since the
   * epoch.
   */
  nextStored = Number.POSITIVE_INFINITY
  /** Slots of messages removed individually that reading has not passed yet. */
  deletedAhead: ReadonlyArray<number> = []
  /** The message that is read next; undefined where it has to be asked for. */
  page: BacklogPage | undefined
  /** Messages of references that were read, or of which some have ended, and that are there. */
  readonly held = new Map<number, HeldMessage>()
  /**
   * Messages whose entries a later one holds again, by sequence. A replica that is behind may return
   * one that is removed.
   */
  readonly replaced = new Set<number>()
  /** Number of its messages when it was found; 0 where it was empty. */
  readonly messages: number
  /** How many deliveries were stored in it so far, from its last message until its first is read. */
  storedInAll: number | undefined
  /** True until its last message was looked at, which a former owner may have written. */
  isUnseen: boolean
  /** The largest body that was read, bytes. */
  largestBody = 0
  /** How many deliveries the message that was read last holds. */
  perMessage = 256
  /** Number of finished deliveries for which nothing remains to be done until others finish. */
  settled = 0
  /** Number of finished deliveries that the last purge could not remove. */
  unpurged = 0
  /** Reads that are under way, and messages that are being replaced: never both. */
  reading = 0
  replacing = 0
  /** The highest sequence that was read: what lies there is not replaced. */
  seen = 0
  /** When it last had no capacity left, ms of the monotonic clock; undefined while it has. */
  idleSince: number | undefined
  /** Entries that ended before they were read. */
  readonly endedAhead = new Set<number>()
  readonly #memory: StreamMemory
  readonly #marks = new Map<number, PendingAppend>()
  readonly #erasures = new Map<number, Effect.Effect<void>>()

  /** Called when there may be work. */
  readonly #wake: () => void

  /**
   * @param beginning where reading continues. (Default: at its first message)
   * @param messages that were found in it.
   */
  constructor(
    to: Addressee,
    memory: StreamMemory,
    beginning: Beginning | undefined,
    messages: number,
    wake: () => void
  ) {
    this.to = to
    this.messages = messages
    this.count = messages
    this.isUnseen = messages > 0
    this.#wake = wake
    this.window = new DrainWindow(beginning)
    this.#memory = memory
  }

  /**
   * True where `count` is all that waits: until its first message is read it is the number of
   * messages, and what this version cannot read is not in it.
   */
  get isCounted(): boolean {
    return !this.isUnseen && this.storedInAll === undefined && this.window.unreadable.count === 0
  }

  /**
   * True where a reading came to its end, and this owner has stored nothing since: another reading
   * would find nothing, unless a former owner has stored something, or a replica was behind.
   */
  get isReadThrough(): boolean {
    const { end, storing, window } = this
    return end !== undefined && window.next >= end + 1 && this.#written <= end && storing === 0
  }

  /** Returns how much memory to reserve for a read of so many deliveries, at most `most` bytes. */
  bytesFor(deliveries: number, most: number): number {
    return Math.min(most, Math.max(minReservedBytes, deliveries * this.largestBody))
  }

  /** Returns what is held of a message of references. */
  heldOf(page: BacklogPage): HeldMessage {
    const known = this.held.get(page.seq)
    if (known !== undefined) return known
    const held: HeldMessage = {
      at: page.at,
      ...heldIn((page.entries ?? []).map(waitingIn)),
      saved: undefined
    }
    this.held.set(page.seq, held)
    return held
  }

  /**
   * Returns the handle of a delivery that was read: it is finished, or given back after a delay.
   */
  hold(of: Omit<Place, "stream">, delivery: Delivery, body: Uint8Array): BacklogMessage {
    const place = { stream: this.#memory.stream, ...of }
    this.#marks.set(slotOf(place), this.#memory.completed.open())
    const deliveryCount = this.poisonCandidates-- > 0 ? suspectCount : 1
    return new BacklogMessage(this, place, delivery, body, deliveryCount)
  }

  /**
   * Marks a delivery as finished: it has ended or was moved.
   *
   * @param erase removes its retry record, and runs once it cannot be read again.
   */
  finish(slot: number, erase: Effect.Effect<void>): void {
    if (this.window.finish(slot) && !this.endedAhead.delete(slot)) this.count--
    this.#erasures.set(slot, erase)
    this.#wake()
  }

  /**
   * Notes that a delivery has ended before it was read.
   *
   * @param erase removes its retry record, and runs once it cannot be read again.
   */
  endedEarly(slot: number, erase: Effect.Effect<void>): void {
    this.count--
    this.endedAhead.add(slot)
    this.window.gone(slot)
    this.#erasures.set(slot, erase)
  }

  /** Notes that a message was stored at the end. */
  stored(seq: number, { deadline }: Pick<Delivery, "deadline">): void {
    this.last = Math.max(this.last, seq)
    this.#written = Math.max(this.#written, seq)
    this.nextStored = Math.min(this.nextStored, deadline)
  }

  /** Keeps a message that this version cannot read. Returns true where it is new. */
  keep(seq: number): boolean {
    const isNew = this.window.keep(seq)
    if (isNew) this.count--
    return isNew
  }

  /** Gives back a delivery that was not begun: it is read again. */
  forget(slot: number, { deadline }: Pick<Delivery, "deadline">): void {
    this.window.forget(slot)
    this.nextStored = Math.min(this.nextStored, deadline)
    this.release(slot)
    this.#wake()
  }

  /** Has a delivery read again that cannot be decided about now. */
  giveBack(position: BacklogPosition, delivery: Delivery): void {
    this.hold(placeIn(position), delivery, new Uint8Array()).nak(undecidedPauseMs)
  }

  /** Stops holding the history watermark below this delivery's facts. */
  release(slot: number): void {
    const mark = this.#marks.get(slot)
    if (mark !== undefined) this.#memory.completed.close(mark)
    this.#marks.delete(slot)
  }

  /**
   * Called with deliveries that cannot be read again, because their messages are gone or it is
   * stored that they have ended. Erases their retry records.
   */
  letGo(slots: ReadonlyArray<number>): Effect.Effect<void> {
    const erasures = slots.flatMap((slot) => this.#erasures.get(slot) ?? [])
    for (const slot of slots) {
      this.release(slot)
      this.#erasures.delete(slot)
    }
    return Effect.forEach(erasures, (erase) => erase, { concurrency: 16, discard: true })
  }
}
