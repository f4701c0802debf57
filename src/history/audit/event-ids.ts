/** Events of which the ids are kept together. */
const blockSize = 4096

/** FNV-1a, 32 bit, and never 0, which stands for none. */
const hashOf = (id: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193)
  return hash >>> 0 || 1
}

/** What the events are called that stand at their sequences, as 4 bytes each. */
export class EventIds {
  readonly #blocks = new Map<number, Uint32Array>()

  add(seq: number, id: string): void {
    const index = Math.floor(seq / blockSize)
    const block = this.#blocks.get(index) ?? new Uint32Array(blockSize)
    this.#blocks.set(index, block)
    block[seq % blockSize] = hashOf(id)
  }

  /** Forgets those of events before one, but for some of them. */
  forgetBefore(seq: number): void {
    for (const index of this.#blocks.keys())
      if ((index + 1) * blockSize <= seq) this.#blocks.delete(index)
  }

  /** True where an event of another id is known to stand there. */
  isOther(seq: number, id: string): boolean {
    const known = this.#blocks.get(Math.floor(seq / blockSize))?.[seq % blockSize] ?? 0
    return known !== 0 && known !== hashOf(id)
  }
}
