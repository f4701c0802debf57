import { timers } from "../../time/timers.ts"

/**
 * How long a request may have lain in its socket before it is handled. Node handles all that has come
 * in one turn of its loop, and reads no socket meanwhile: what is handled now has come in this turn or
 * the one before.
 */
export class RequestAge {
  /** When this turn began, ms of the monotonic clock; undefined between turns. */
  #began: number | undefined
  #lastTurnMs = 0

  /** Notes that a turn has begun, if nothing was handled in it before. */
  note(now: number): void {
    if (this.#began !== undefined) return
    this.#began = now
    timers.immediate(() => {
      this.#lastTurnMs = timers.monotonicMs() - now
      this.#began = undefined
    })
  }

  /** Returns the age that a request which is handled now has at most, ms. */
  at(now: number): number {
    return now - (this.#began ?? now) + this.#lastTurnMs
  }
}
