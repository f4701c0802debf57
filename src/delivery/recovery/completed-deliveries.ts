import type { Linked } from "../../broker/intrusive-list.ts"
import { IntrusiveList } from "../../broker/intrusive-list.ts"

/** A position in HISTORY: what is stored from now on lies after it. */
interface HistoryWatermark {
  readonly seq: number
  /** How often the {@link HistoryPosition} had fallen back by then. */
  readonly falls: number
}

/** A fact that is about to be appended. */
export interface PendingAppend extends Linked<PendingAppend> {
  /** The fact will be stored after this position. */
  readonly floor: HistoryWatermark
}

/**
 * A fact and when it was stored, ms since the epoch; `at` is 0 where there is no fact at the
 * sequence.
 */
export interface KnownFact {
  readonly seq: number
  readonly at: number
}

/** Number of generations kept besides the current one. */
const kept = 2

/** When messages were stored, ms since the epoch, by slot (`slotOf`): one map for each ack_wait. */
export type Generations = ReadonlyArray<ReadonlyMap<number, number>>

/**
 * How far a worker knows the history: the last sequence that it has seen. All its partitions share
 * one, so that the watermark of an idle partition keeps up.
 */
export class HistoryPosition {
  #seq: number
  /** The sequence of each fall back. */
  readonly #falls: Array<number> = []
  /** The last fact that was read at its sequence. */
  lastRead: KnownFact
  #isDoubtful = false

  constructor(seq: number, at = 0) {
    this.#seq = seq
    this.lastRead = { seq, at }
  }

  /** The current position: what is stored from now on lies after it. */
  get floor(): HistoryWatermark {
    return { seq: this.#seq, falls: this.#falls.length }
  }

  /** True from a reconnect until it is known whether the history was truncated. */
  get isDoubtful(): boolean {
    return this.#isDoubtful
  }

  /** Called when a fact was stored at this sequence. */
  stored(seq: number): void {
    if (seq > this.#seq && !this.#isDoubtful) this.#seq = seq
  }

  /**
   * Called after a reconnect: the broker may have truncated the history, and reuse its sequences.
   */
  doubt(): void {
    this.#isDoubtful = true
  }

  /** Ends the doubt: nothing after this sequence is known any more. */
  fallBack(seq: number): void {
    this.#seq = Math.min(this.#seq, seq)
    this.#falls.push(this.#seq)
    this.#isDoubtful = false
  }

  /** Returns an earlier watermark, lowered by all truncations since. */
  lowered({ falls, seq }: HistoryWatermark): number {
    return Math.min(seq, ...this.#falls.slice(falls))
  }
}

/**
 * What a partition's owner remembers of messages that have ended, in case the broker does not know
 * it: an acknowledgement may be lost, and a broker that crashes may forget some. A redelivered
 * message is acknowledged again and not attempted.
 *
 * It also tracks the watermark: the sequence of HISTORY below which all is settled, and from which
 * a new owner reads.
 */
export class CompletedDeliveries {
  /** When the messages were stored, ms since the epoch, by slot. */
  readonly #generations: Array<Map<number, number>>
  /**
   * For each generation, what the facts of its messages and of all newer ones lie after; undefined
   * where only the stored watermark tells.
   */
  readonly #floors: Array<HistoryWatermark | undefined>
  /** In the order of their floors: when the position falls back, theirs are lowered too. */
  readonly #open: IntrusiveList<PendingAppend>
  readonly #position: HistoryPosition
  #opened = 0

  /** @param generations what the owner before remembered, the newest first. (Default: nothing) */
  constructor(
    historyPosition: HistoryPosition,
    generations: Generations = [new Map()],
    open = new IntrusiveList<PendingAppend>()
  ) {
    this.#position = historyPosition
    this.#open = open
    this.#generations = generations.map((generation) => new Map(generation))
    this.#floors = generations.map(() => undefined)
  }

  /**
   * Returns the same for the partition's backlog, with a shared watermark. It forgets only what is
   * deleted.
   *
   * @param generations what the owner before remembered. (Default: nothing)
   */
  forBacklog(generations?: Generations): CompletedDeliveries {
    return new CompletedDeliveries(this.#position, generations, this.#open)
  }

  /** What it remembers, the newest first. */
  get generations(): Generations {
    return this.#generations
  }

  /** True while no fact is being appended whose message is not released yet. */
  get isIdle(): boolean {
    return this.#open.size === 0
  }

  /** How many facts were about to be appended so far. */
  get opened(): number {
    return this.#opened
  }

  /** Forgets a delivery whose message is gone for good. */
  delete(slot: number): void {
    for (const generation of this.#generations) generation.delete(slot)
  }

  /**
   * True where a delivery has ended. A truncated stream reuses sequences, even for the same
   * delivery: together with the time a sequence identifies a message.
   *
   * @param at when it was stored, ms since the epoch.
   */
  has(slot: number, at: number): boolean {
    return this.#generations.some((generation) => generation.get(slot) === at)
  }

  /** @param at when the message was stored, ms since the epoch. */
  add(slot: number, at: number): void {
    this.#generations[0]?.set(slot, at)
  }

  /**
   * Remembers a message that has ended for as long again. Called when it was redelivered: an
   * acknowledgement was lost, and the next one may be lost, too.
   */
  renew(seq: number, at: number): void {
    const age = this.#generations.findIndex((generation) => generation.get(seq) === at)
    if (age <= 0) return
    this.#generations[0]?.set(seq, at)
    this.keepBelow(age)
  }

  /**
   * Keeps the watermark below the facts of what ended so many rotations ago for as long as below
   * those of what ends now.
   */
  keepBelow(age: number): void {
    this.#floors.fill(this.#floors[age], 0, age)
  }

  /**
   * Marks that a fact is about to be appended; `close` the mark when its message is released. The
   * watermark stays below the fact until then.
   */
  open(): PendingAppend {
    const mark = { floor: this.#position.floor, before: undefined, after: undefined }
    this.#open.add(mark)
    this.#opened++
    return mark
  }

  /** Called when the fact was stored at this sequence of HISTORY. */
  stored(seq: number): void {
    this.#position.stored(seq)
  }

  close(mark: PendingAppend): void {
    this.#open.remove(mark)
  }

  /**
   * Forgets the oldest generation. Called once per ack_wait in which the broker could redeliver
   * without interruption.
   *
   * @returns the watermark that may be stored now, or undefined while it is too early.
   */
  rotate(): number | undefined {
    this.#generations.unshift(new Map())
    this.#floors.unshift(this.#open.first?.floor ?? this.#position.floor)
    if (this.#generations.length <= kept + 1) return undefined
    this.#generations.pop()
    this.#floors.pop()
    const floor = this.#floors.at(-1)
    return floor === undefined ? undefined : this.#position.lowered(floor)
  }
}
