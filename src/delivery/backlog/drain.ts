import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import type { Delivery } from "../../domain/delivery.ts"
import { parseDelivery } from "../../domain/delivery.ts"
import type { PendingAppend } from "../recovery/completed-deliveries.ts"
import type { StreamMemory } from "../recovery/partition-memory.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import type { Addressee } from "./backlog.ts"
import type { Beginning } from "./drain-window.ts"
import { DrainWindow } from "./drain-window.ts"

/** Stands for how often a message of which a former owner may have died was handed out: nobody counts it. */
const perhapsDeadly = 100

/** A look for deadlines that has come so far. */
export interface ScanCursor {
  /** The sequence where it goes on. */
  readonly from: number
  /** The first deadline that it has seen and that has not passed, ms since the epoch. */
  readonly first: number
}

/** One endpoint's backlog, from the first message stored there until nothing is left that can be read. */
export class Drain {
  readonly to: Addressee
  readonly window: DrainWindow
  /** Messages that are being stored. */
  storing = 0
  /** Messages that it holds, without those that are unreadable. */
  count = 0
  /** The last sequence known to be stored: what is being stored comes after it. */
  last = 0
  /** How many of those that are read next a former owner may have died of. */
  suspects = 0
  /** Before it no deadline passes of what was there at the last look for such, ms since the epoch. */
  nextDeadline = 0
  /** The look for such that is under way. */
  look: ScanCursor | undefined
  /** The first deadline of what was stored or given back since the last look for such, ms since the epoch. */
  nextStored = Number.POSITIVE_INFINITY
  /** Taken out one by one, and not purged past. */
  thinned: ReadonlyArray<number> = []
  readonly #memory: StreamMemory
  readonly #marks = new Map<number, PendingAppend>()
  readonly #erasures = new Map<number, Effect.Effect<void>>()

  /** Told when there may be something to do. */
  readonly #wake: () => void

  /** @param beginning where it is read on. (Default: at its first message) */
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

  /** A delivery that was read, to be finished, or given back after a while. */
  hold({ data, seq, time }: StoredMsg, delivery: Delivery): AckHandle {
    const place = { stream: this.#memory.stream, seq, at: time.getTime() }
    this.#marks.set(seq, this.#memory.settled.open())
    let given = false
    return {
      place,
      delivery,
      body: data,
      deliveryCount: this.suspects-- > 0 ? perhapsDeadly : 1,
      ack: (erase) => {
        this.finish(seq, erase)
        return Effect.void
      },
      nak: (delayMs) => {
        if (!given) setTimeout(() => this.forget(seq, delivery), Math.max(1, delayMs)).unref()
        given = true
      }
    }
  }

  /**
   * It has ended, or waits elsewhere now.
   *
   * @param erase removes what was written about it, once it is gone from the stream.
   */
  finish(seq: number, erase: Effect.Effect<void>): void {
    this.window.finish(seq)
    this.#erasures.set(seq, erase)
    this.#wake()
  }

  /** This version cannot read it; true where that was not known. */
  keep(seq: number): boolean {
    const isNew = this.window.keep(seq)
    if (isNew) this.count--
    return isNew
  }

  /** It was not begun, and is to be read again. */
  forget(seq: number, { deadline }: Delivery): void {
    this.window.forget(seq)
    this.nextStored = Math.min(this.nextStored, deadline)
    this.release(seq)
    this.#wake()
  }

  /** Nothing needs to be remembered any more for its sake. */
  release(seq: number): void {
    const mark = this.#marks.get(seq)
    if (mark !== undefined) this.#memory.settled.close(mark)
    this.#marks.delete(seq)
  }

  /** They are gone from the stream: removes what was written about them. */
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

/** The delivery that a message of a backlog is, or undefined where this version cannot read it. */
export const deliveryIn = ({ header, subject }: StoredMsg): Delivery | undefined =>
  parseDelivery(subject, (name) => header.get(name) || undefined)
