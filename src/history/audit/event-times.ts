import { eventsPerBlock } from "./block.ts"

/**
 * When the event at each sequence was stored, ms since the epoch, in 8 bytes each. A fact with
 * another time is about another event, which had the sequence before the broker lost it.
 */
export class EventTimes {
  readonly #blocks = new Map<number, Float64Array>()

  /** 0 if unknown. */
  of(seq: number): number {
    return this.#blocks.get(Math.floor(seq / eventsPerBlock))?.[seq % eventsPerBlock] ?? 0
  }

  set(seq: number, at: number): void {
    const index = Math.floor(seq / eventsPerBlock)
    const block = this.#blocks.get(index) ?? new Float64Array(eventsPerBlock)
    this.#blocks.set(index, block)
    block[seq % eventsPerBlock] = at
  }

  /** True if an event of another time is known at the sequence. */
  isOther(seq: number, at: number): boolean {
    const known = this.of(seq)
    return known !== 0 && known !== at
  }

  /** Drops the times of one of the ledger's blocks of events. */
  forget(block: number): void {
    this.#blocks.delete(block)
  }
}
