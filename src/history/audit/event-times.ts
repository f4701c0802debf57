/** Events of which the times are kept together. */
const blockSize = 4096

/**
 * When the events were stored that stand at their sequences, ms since the epoch, as 8 bytes each. What
 * says another time is about another event, which had the sequence before the broker lost it.
 */
export class EventTimes {
  readonly #blocks = new Map<number, Float64Array>()

  /** 0 where it is not known. */
  of(seq: number): number {
    return this.#blocks.get(Math.floor(seq / blockSize))?.[seq % blockSize] ?? 0
  }

  set(seq: number, at: number): void {
    const index = Math.floor(seq / blockSize)
    const block = this.#blocks.get(index) ?? new Float64Array(blockSize)
    this.#blocks.set(index, block)
    block[seq % blockSize] = at
  }

  /** True where an event of another time is known to stand at a sequence. */
  isOther(seq: number, at: number): boolean {
    const known = this.of(seq)
    return known !== 0 && known !== at
  }

  /** Forgets those of events before one, as far as whole blocks of them are. */
  forgetBefore(seq: number): void {
    for (const index of this.#blocks.keys())
      if ((index + 1) * blockSize <= seq) this.#blocks.delete(index)
  }
}
