import type { Delivery } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"

/** What tells the deliveries of one endpoint from each other: an event may come to it in several rounds. */
export type Identity = Pick<Delivery, "eventSeq" | "round">

/** Nearly all are of the first round, and a number takes less memory than a text. */
const nameOf = ({ eventSeq, round }: Identity): number | string =>
  round === firstRound ? eventSeq : `${eventSeq}.${round}`

/** Generations kept besides the present one. */
const kept = 2

/**
 * How far a worker knows the history: the last sequence of which it has heard. One for all its
 * partitions, so that the floor of an idle one does not stay behind.
 */
export class Horizon {
  #seq: number
  #mark = 0

  constructor(seq: number) {
    this.#seq = seq
  }

  get seq(): number {
    return this.#seq
  }

  /** A number that is given once. */
  nextMark(): number {
    return this.#mark++
  }

  /** A fact was stored at this sequence. */
  stored(seq: number): void {
    if (seq > this.#seq) this.#seq = seq
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
export class Settled {
  readonly #generations: Array<Map<number, number | string>> = [new Map()]
  readonly #floors: Array<number> = []
  readonly #open: Map<number, number>
  readonly #horizon: Horizon

  constructor(horizon: Horizon, open = new Map<number, number>()) {
    this.#horizon = horizon
    this.#open = open
  }

  /** The same for the partition's backlog: they share the floor. It forgets only what it is told to. */
  beside(): Settled {
    return new Settled(this.#horizon, this.#open)
  }

  /** It is gone for good. */
  delete(seq: number): void {
    for (const generation of this.#generations) generation.delete(seq)
  }

  /** Facts that are appended from now on are stored beyond this sequence of HISTORY. */
  get known(): number {
    return this.#horizon.seq
  }

  /**
   * True where the message at a sequence has ended. A stream that loses its tail in a crash counts
   * on from there, so the delivery and its round tell whether it is still the same message.
   */
  has(seq: number, of: Identity): boolean {
    const name = nameOf(of)
    return this.#generations.some((generation) => generation.get(seq) === name)
  }

  /** True where some message at a sequence has ended. */
  mayHave(seq: number): boolean {
    return this.#generations.some((generation) => generation.has(seq))
  }

  add(seq: number, of: Identity): void {
    this.#generations[0]?.set(seq, nameOf(of))
  }

  /**
   * Marks that a fact is about to be appended; `close` it when its message has been released.
   * Until then the floor stays below it.
   */
  open(): number {
    const mark = this.#horizon.nextMark()
    this.#open.set(mark, this.#horizon.seq)
    return mark
  }

  /** The fact was stored at this sequence of HISTORY. */
  stored(seq: number): void {
    this.#horizon.stored(seq)
  }

  close(mark: number): void {
    this.#open.delete(mark)
  }

  /**
   * Forgets the oldest generation. To be called once per ack_wait in which messages could come
   * back without hindrance.
   *
   * @returns the floor that may now be stored, or undefined while it is too early.
   */
  rotate(): number | undefined {
    this.#generations.unshift(new Map())
    this.#floors.unshift(Math.min(this.#horizon.seq, ...this.#open.values()))
    if (this.#generations.length <= kept + 1) return undefined
    this.#generations.pop()
    return this.#floors.pop()
  }
}
