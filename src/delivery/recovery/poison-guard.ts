import type { AckHandle } from "../source/ack-handle.ts"

/** Handed out this often more than attempts are told of, a message may be what its workers die of. */
const suspicious = 3
/** Pause before such a message is tried again, ms: doubles from the first to the second. */
const pauses = [1_000, 300_000] as const

const pauseAfter = (times: number): number =>
  Math.min(pauses[0] * 2 ** Math.min(times, 20), pauses[1])

type Named = Pick<AckHandle, "place">

/**
 * Keeps messages that break their worker from breaking it at once again: those during whose trial
 * a worker died, and those that met a defect. They come back later and later, so that the others
 * go on.
 *
 * That a message is handed out often proves nothing, since it may only have stood in line. So one
 * that was is marked before it is tried, and suspected where the mark is found again.
 */
export class PoisonGuard {
  readonly #cleared = new Set<number>()
  readonly #paused = new Set<number>()
  readonly #defects = new Map<number, number>()

  /**
   * True where the next trial of a message is to be marked.
   *
   * @param told attempts made with this message, as far as anything tells of them.
   */
  watches(
    { deliveryCount, place }: Pick<AckHandle, "deliveryCount" | "place">,
    told: number
  ): boolean {
    return deliveryCount - told >= suspicious && !this.#cleared.has(place.seq)
  }

  /** How long to put a message off that was marked so often, ms; 0 where it should be tried now. */
  pauseBefore({ place }: Named, trials: number): number {
    if (trials === 0 || this.#paused.has(place.seq)) return 0
    this.#paused.add(place.seq)
    return pauseAfter(trials - 1)
  }

  /** It was handed out and given back by this worker, for no fault of its own. */
  clear({ place }: Named): void {
    if (!this.#paused.has(place.seq)) this.#cleared.add(place.seq)
  }

  /** Counts a defect met with a message, and says how long it should be put off, ms. */
  afterDefect(seq: number): number {
    const times = this.#defects.get(seq) ?? 0
    this.#defects.set(seq, times + 1)
    this.#cleared.add(seq)
    return pauseAfter(times)
  }

  /** It has ended. */
  forget(seq: number): void {
    this.#cleared.delete(seq)
    this.#paused.delete(seq)
    this.#defects.delete(seq)
  }
}
