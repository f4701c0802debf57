import type { AckHandle } from "../source/ack-handle.ts"

/**
 * A message with this many more deliveries by the broker than recorded attempts may be what crashes
 * its workers.
 */
const suspicious = 3
/** Pause before such a message is attempted again, ms: doubles from the first to the second. */
const pauses = [1_000, 300_000] as const

const pauseAfter = (times: number): number =>
  Math.min(pauses[0] * 2 ** Math.min(times, 20), pauses[1])

type Named = Pick<AckHandle, "place">

/**
 * Keeps messages that break a worker from breaking it again at once: those whose attempt a worker
 * did not survive, and those that met a defect. They are redelivered after growing pauses, so that
 * others proceed.
 *
 * A high delivery count proves nothing, since the message may only have waited in a lane. So such a
 * message is marked before it is attempted, and suspect where the mark is found again.
 */
export class PoisonGuard {
  readonly #cleared = new Set<number>()
  readonly #paused = new Set<number>()
  readonly #defects = new Map<number, number>()

  /**
   * True where the next attempt of a message must be marked.
   *
   * @param told attempts of this message that are recorded.
   */
  watches(
    { deliveryCount, place }: Pick<AckHandle, "deliveryCount" | "place">,
    told: number
  ): boolean {
    return deliveryCount - told >= suspicious && !this.#cleared.has(place.seq)
  }

  /**
   * Returns how long to defer a message with this many marked attempts, ms; 0 where it should be
   * attempted now.
   */
  pauseBefore({ place }: Named, trials: number): number {
    if (trials === 0 || this.#paused.has(place.seq)) return 0
    this.#paused.add(place.seq)
    return pauseAfter(trials - 1)
  }

  /** Notes that this worker gave the message back without an attempt, for reasons of its own. */
  clear({ place }: Named): void {
    if (!this.#paused.has(place.seq)) this.#cleared.add(place.seq)
  }

  /** Counts a defect met with a message. Returns how long to defer it, ms. */
  afterDefect(seq: number): number {
    const times = this.#defects.get(seq) ?? 0
    this.#defects.set(seq, times + 1)
    this.#cleared.add(seq)
    return pauseAfter(times)
  }

  /** Forgets a message that has ended. */
  forget(seq: number): void {
    this.#cleared.delete(seq)
    this.#paused.delete(seq)
    this.#defects.delete(seq)
  }
}
