import { isSuspect, pauseAfterDefectMs } from "../../policy/decide.ts"

/**
 * Keeps messages that break a worker from breaking it again at once: those whose attempt a worker
 * did not survive, and those that met a defect. They are redelivered after growing pauses
 * (policy/decide.ts), so that others proceed. Messages are named by their sequence.
 *
 * A high delivery count proves nothing, since the message may only have waited in a lane. So such a
 * message is marked before it is attempted, and suspect where the mark is found again.
 */
export class PoisonGuard {
  readonly #cleared = new Set<number>()
  readonly #paused = new Set<number>()
  readonly #defects = new Map<number, number>()

  /** True where the next attempt of a message without a recorded attempt must be marked. */
  isSuspect(seq: number, deliveryCount: number): boolean {
    return isSuspect(deliveryCount, 0) && !this.#cleared.has(seq)
  }

  /** True where this worker gave the message back itself, so that its count proves nothing. */
  isCleared(seq: number): boolean {
    return this.#cleared.has(seq)
  }

  /** True where this worker has paused the message before a trial. */
  wasPaused(seq: number): boolean {
    return this.#paused.has(seq)
  }

  /** Notes that the message is paused before its next trial. */
  pause(seq: number): void {
    this.#paused.add(seq)
  }

  /** Notes that this worker gave the message back without an attempt, for reasons of its own. */
  clear(seq: number): void {
    if (!this.#paused.has(seq)) this.#cleared.add(seq)
  }

  /** Counts a defect met with a message. Returns how long to defer it, ms. */
  afterDefect(seq: number): number {
    const defects = this.#defects.get(seq) ?? 0
    this.#defects.set(seq, defects + 1)
    this.#cleared.add(seq)
    return pauseAfterDefectMs(defects)
  }

  /** Forgets a message that has ended. */
  forget(seq: number): void {
    this.#cleared.delete(seq)
    this.#paused.delete(seq)
    this.#defects.delete(seq)
  }
}
