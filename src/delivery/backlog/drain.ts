import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import type { Addressee, Delivery } from "../../domain/delivery.ts"
import { parseDelivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { timers } from "../../time/timers.ts"
import type { AckHandle } from "../execution/ack-handle.ts"
import type { PendingAppend } from "../recovery/completed-deliveries.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { Beginning } from "./drain-window.ts"
import { DrainWindow } from "./drain-window.ts"

/**
 * Delivery count assumed for a message that may have crashed a former owner: no consumer counts
 * deliveries here.
 */
const suspectCount = 100

/** A message that was read from a backlog. */
export class BacklogMessage implements AckHandle {
  readonly place: Place
  readonly delivery: Delivery
  readonly body: Uint8Array
  readonly deliveryCount: number
  readonly #drain: Drain
  #isGivenBack = false

  constructor(
    drain: Drain,
    stream: string,
    { data, seq, time }: StoredMsg,
    delivery: Delivery,
    deliveryCount: number
  ) {
    this.#drain = drain
    this.place = { stream, seq, at: time.getTime() }
    this.delivery = delivery
    this.body = data
    this.deliveryCount = deliveryCount
  }

  ack(erase: Effect.Effect<void>): Effect.Effect<void> {
    this.#drain.finish(this.place.seq, erase)
    return Effect.void
  }

  nak(delayMs: number): void {
    if (this.#isGivenBack) return
    this.#isGivenBack = true
    const giveBack = () => this.#drain.forget(this.place.seq, this.delivery)
    timers.after(Math.max(1, delayMs), giveBack).unref()
  }
}

/** Progress of a search for passed deadlines. */
export interface ScanCursor {
  /** The sequence where the search continues. */
  readonly from: number
  /** The earliest deadline found that has not passed, ms since the epoch. */
  readonly first: number
}

/**
 * One endpoint's backlog, from the first message stored there until no readable message is left.
 */
export class Drain {
  readonly to: Addressee
  readonly window: DrainWindow
  /** Number of messages that are being stored. */
  storing = 0
  /** Number of messages in the backlog, without unreadable ones. */
  count = 0
  /** The last sequence known to be stored. Messages that are being stored come after it. */
  last = 0
  /** How many of the next messages may have crashed a former owner. */
  poisonCandidates = 0
  /**
   * No deadline among the messages of the last search passes before this time, ms since the epoch.
   */
  nextDeadline = 0
  /** The search for passed deadlines that is in progress. */
  scan: ScanCursor | undefined
  /**
   * The earliest deadline among messages stored or given back since the last search, ms since the
   * epoch.
   */
  nextStored = Number.POSITIVE_INFINITY
  /** Messages removed individually that reading has not passed yet. */
  deletedAhead: ReadonlyArray<number> = []
  readonly #memory: StreamMemory
  readonly #marks = new Map<number, PendingAppend>()
  readonly #erasures = new Map<number, Effect.Effect<void>>()

  /** Called when there may be work. */
  readonly #wake: () => void

  /** @param beginning where reading continues. (Default: at its first message) */
  constructor(
    to: Addressee,
    memory: StreamMemory,
    beginning: Beginning | undefined,
    wake: () => void
  ) {
    this.to = to
    this.#wake = wake
    this.window = new DrainWindow(beginning)
    this.#memory = memory
  }

  /**
   * Returns the handle of a message that was read: the delivery is finished, or given back after a
   * delay.
   */
  hold(message: StoredMsg, delivery: Delivery): BacklogMessage {
    const { seq } = message
    this.#marks.set(seq, this.#memory.completed.open())
    const deliveryCount = this.poisonCandidates-- > 0 ? suspectCount : 1
    return new BacklogMessage(this, this.#memory.stream, message, delivery, deliveryCount)
  }

  /**
   * Marks a message as finished: it has ended, or waits elsewhere.
   *
   * @param erase removes its retry record, and runs once the message is gone from the stream.
   */
  finish(seq: number, erase: Effect.Effect<void>): void {
    this.window.finish(seq)
    this.#erasures.set(seq, erase)
    this.#wake()
  }

  /** Notes that a message was stored at the end. */
  stored(seq: number, { deadline }: Delivery): void {
    this.last = Math.max(this.last, seq)
    this.nextStored = Math.min(this.nextStored, deadline)
  }

  /** Keeps a message that this version cannot read. Returns true where it is new. */
  keep(seq: number): boolean {
    const isNew = this.window.keep(seq)
    if (isNew) this.count--
    return isNew
  }

  /** Gives back a message that was not begun: it is read again. */
  forget(seq: number, { deadline }: Delivery): void {
    this.window.forget(seq)
    this.nextStored = Math.min(this.nextStored, deadline)
    this.release(seq)
    this.#wake()
  }

  /** Stops holding the history watermark below this message's facts. */
  release(seq: number): void {
    const mark = this.#marks.get(seq)
    if (mark !== undefined) this.#memory.completed.close(mark)
    this.#marks.delete(seq)
  }

  /** Called with messages that are gone from the stream. Erases their retry records. */
  letGo(gone: ReadonlyArray<number>): Effect.Effect<void> {
    this.count -= gone.length
    const erasures = gone.flatMap((seq) => this.#erasures.get(seq) ?? [])
    for (const seq of gone) {
      this.release(seq)
      this.#erasures.delete(seq)
    }
    return Effect.forEach(erasures, (erase) => erase, { concurrency: 16, discard: true })
  }
}

/** Returns the delivery in a message of a backlog; undefined where this version cannot read it. */
export const deliveryIn = ({ header, subject }: StoredMsg): Delivery | undefined =>
  parseDelivery(subject, (name) => header.get(name) || undefined)
