import type { Linked } from "../../broker/intrusive-list.ts"
import { IntrusiveList } from "../../broker/intrusive-list.ts"
import type { RoundIdentity } from "../../domain/delivery.ts"
import { firstRound, roundKey } from "../../domain/delivery.ts"

/** Events that are told from each other though they were stored in the same ms. */
const maxFactsPerMs = 1_024

/** Nearly all are of the first round, and a number takes less memory than a text. */
const nameOf = (of: RoundIdentity): number | string =>
  of.round === firstRound
    ? of.eventAt * maxFactsPerMs + (of.eventSeq % maxFactsPerMs)
    : roundKey(of)

/** What is stored from now on lies beyond a sequence of HISTORY. */
export interface HistoryWatermark {
  readonly seq: number
  /** How often the horizon had fallen back by then. */
  readonly falls: number
}

/** A fact that is about to be appended. */
export interface PendingAppend extends Linked<PendingAppend> {
  /** It will be stored beyond this. */
  readonly floor: HistoryWatermark
}

/** A fact of which it is known when it was stored, ms since the epoch; 0 where there is none at the sequence. */
export interface KnownFact {
  readonly seq: number
  readonly at: number
}

/** Generations kept besides the present one. */
const kept = 2

/**
 * How far a worker knows the history: the last sequence of which it has heard. One for all its
 * partitions, so that the floor of an idle one does not stay behind.
 */
export class HistoryPosition {
  #seq: number
  /** To which sequence it has fallen back, each time. */
  readonly #falls: Array<number> = []
  /** The last fact that was seen where it lies. */
  known: KnownFact
  #isDoubtful = false

  constructor(seq: number, at = 0) {
    this.#seq = seq
    this.known = { seq, at }
  }

  /** What is stored from now on lies beyond it. */
  get floor(): HistoryWatermark {
    return { seq: this.#seq, falls: this.#falls.length }
  }

  /** True from an interruption until the history is known to be what it was, or to have lost its end. */
  get isDoubtful(): boolean {
    return this.#isDoubtful
  }

  /** A fact was stored at this sequence. */
  stored(seq: number): void {
    if (seq > this.#seq && !this.#isDoubtful) this.#seq = seq
  }

  /** The broker was away: it may have lost the end of the history, and give its sequences again. */
  doubt(): void {
    this.#isDoubtful = true
  }

  /** Beyond a sequence nothing is known any more. */
  fallBack(seq: number): void {
    this.#seq = Math.min(this.#seq, seq)
    this.#falls.push(this.#seq)
    this.#isDoubtful = false
  }

  /** A floor of earlier as it is now: what lay between may have been lost since. */
  lowered({ falls, seq }: HistoryWatermark): number {
    return Math.min(seq, ...this.#falls.slice(falls))
  }
}

/**
 * What a partition's owner remembers of messages that have ended, in case the broker did not hear
 * of it: an acknowledgement may be lost, and after a crash the broker may forget some. A message
 * that comes back is acknowledged again and not attempted.
 *
 * It also knows the floor: the sequence of HISTORY below which all is settled, from where a new
 * owner reads.
 */
export class CompletedDeliveries {
  readonly #generations: Array<Map<number, number | string>> = [new Map()]
  readonly #floors: Array<HistoryWatermark> = []
  /** In the order of their floors: where the horizon falls back, theirs are lowered to it. */
  readonly #open: IntrusiveList<PendingAppend>
  readonly #horizon: HistoryPosition

  constructor(horizon: HistoryPosition, open = new IntrusiveList<PendingAppend>()) {
    this.#horizon = horizon
    this.#open = open
  }

  /** The same for the partition's backlog: they share the floor. It forgets only what it is told to. */
  beside(): CompletedDeliveries {
    return new CompletedDeliveries(this.#horizon, this.#open)
  }

  /** It is gone for good. */
  delete(seq: number): void {
    for (const generation of this.#generations) generation.delete(seq)
  }

  /**
   * True where the message at a sequence has ended. A stream that loses its tail in a crash counts
   * on from there, so the delivery and its round tell whether it is still the same message.
   */
  has(seq: number, of: RoundIdentity): boolean {
    const name = nameOf(of)
    return this.#generations.some((generation) => generation.get(seq) === name)
  }

  /** True where some message at a sequence has ended. */
  mayHave(seq: number): boolean {
    return this.#generations.some((generation) => generation.has(seq))
  }

  add(seq: number, of: RoundIdentity): void {
    this.#generations[0]?.set(seq, nameOf(of))
  }

  /**
   * Marks that a fact is about to be appended; `close` it when its message has been released.
   * Until then the floor stays below it.
   */
  open(): PendingAppend {
    const mark = { floor: this.#horizon.floor, before: undefined, after: undefined }
    this.#open.add(mark)
    return mark
  }

  /** The fact was stored at this sequence of HISTORY. */
  stored(seq: number): void {
    this.#horizon.stored(seq)
  }

  close(mark: PendingAppend): void {
    this.#open.remove(mark)
  }

  /**
   * Forgets the oldest generation. To be called once per ack_wait in which messages could come
   * back without hindrance.
   *
   * @returns the floor that may now be stored, or undefined while it is too early.
   */
  rotate(): number | undefined {
    this.#generations.unshift(new Map())
    this.#floors.unshift(this.#open.first?.floor ?? this.#horizon.floor)
    if (this.#generations.length <= kept + 1) return undefined
    this.#generations.pop()
    const floor = this.#floors.pop()
    return floor === undefined ? undefined : this.#horizon.lowered(floor)
  }
}
