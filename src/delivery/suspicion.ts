import type { Held } from "./held.ts"

/** Handed out this often without any fact, a message may be what its workers die of. */
const suspicious = 3
/** Pause before such a message is tried again, ms: doubles from the first to the second. */
const pauses = [1_000, 300_000] as const

const pauseAfter = (times: number): number =>
  Math.min(pauses[0] * 2 ** Math.min(times, 20), pauses[1])

/**
 * Keeps messages that break their worker from breaking it at once again: those that are handed out
 * again and again though nothing was ever told of them, and those that met a defect. They come back
 * later and later, so that the others go on.
 */
export class Suspicion {
  readonly #suspects = new Set<number>()
  readonly #cleared = new Set<number>()
  readonly #defects = new Map<number, number>()

  /** How long an unattempted message should be put off, ms; 0 where it should be tried now. */
  of({ handedOut, place: { seq } }: Pick<Held, "handedOut" | "place">): number {
    if (handedOut < suspicious || this.#cleared.has(seq)) return 0
    this.#suspects.add(seq)
    this.#cleared.add(seq)
    return pauseAfter(handedOut - suspicious)
  }

  isSuspect({ place }: Pick<Held, "place">): boolean {
    return this.#suspects.has(place.seq)
  }

  /** It was handed out and given back by this worker, for no fault of its own. */
  clear({ place }: Pick<Held, "place">): void {
    this.#cleared.add(place.seq)
  }

  /** Counts a defect met with a message, and says how long it should be put off, ms. */
  afterDefect({ place: { seq } }: Pick<Held, "place">): number {
    const times = this.#defects.get(seq) ?? 0
    this.#defects.set(seq, times + 1)
    this.#cleared.add(seq)
    return pauseAfter(times)
  }

  /** It has ended. */
  forget(seq: number): void {
    this.#suspects.delete(seq)
    this.#cleared.delete(seq)
    this.#defects.delete(seq)
  }
}
