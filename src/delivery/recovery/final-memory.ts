import { packMemory } from "./handed-memory.ts"
import type { PartitionMemory } from "./partition-memory.ts"

interface FinalMemoryOptions {
  readonly memory: PartitionMemory
  /** True while no move to a backlog has an unknown outcome. */
  readonly areMovesKnown: () => boolean
  /** True while it is unknown whether a stream was truncated. */
  readonly isDoubtful: () => boolean
}

/**
 * What an owner remembers at its end, if that is all that the next owner must know. It is not where
 * the history may hold a fact that this owner does not know to be stored: its work was cut off.
 */
export class FinalMemory {
  readonly #options: FinalMemoryOptions
  /** How many facts were begun when all was settled; undefined if that was not so. */
  #settledAt: number | undefined

  constructor(options: FinalMemoryOptions) {
    this.#options = options
  }

  /** How many facts were begun in the queue and in the backlog. */
  get #begun(): number {
    const { memory } = this.#options
    return memory.completed.opened + memory.backlog.completed.opened
  }

  /** Notes whether all is settled. Called once nothing is in flight and nothing may begin. */
  note(): void {
    const { areMovesKnown, memory } = this.#options
    const isSettled = memory.completed.isIdle && memory.directDeliveries.isIdle && areMovesKnown()
    this.#settledAt = isSettled ? this.#begun : undefined
  }

  /**
   * Returns it as bytes; undefined where the next owner has to read the history. Called once the
   * partition's scope is closed: what began a fact since was cut off.
   */
  get packed(): Uint8Array | undefined {
    const { isDoubtful, memory } = this.#options
    return this.#settledAt === this.#begun && !isDoubtful() ? packMemory(memory) : undefined
  }
}
