import { eventsPerBlock } from "./block.ts"

/**
 * When the events were stored that stand at their sequences, ms since the epoch, as 8 bytes each. What
 * says another time is about another event, which had the sequence before the broker lost it.
 */
export class EventTimes {
  readonly #blocks = new Map<number, Float64Array>()

  /** 0 where it is not known. */
  of(seq: number): number {
    return this.#blocks.get(Math.floor(seq / eventsPerBlock))?.[seq % eventsPerBlock] ?? 0
  }

  set(seq: number, at: number): void {
    const index = Math.floor(seq / eventsPerBlock)
    const block = this.#blocks.get(index) ?? new Float64Array(eventsPerBlock)
    this.#blocks.set(index, block)
    block[seq % eventsPerBlock] = at
  }

  /** True where an event of another time is known to stand at a sequence. */
  isOther(seq: number, at: number): boolean {
    const known = this.of(seq)
    return known !== 0 && known !== at
  }

  /** Forgets those of a block of events, as the ledger counts them. */
  forget(block: number): void {
    this.#blocks.delete(block)
  }
}
