/** Before anything is measured, ms. */
const assumedMs = 0.1
/** Of what the last so many arrivals took, the mean is known by. */
const remembered = 256

/**
 * What one arrival takes of a thread besides the work that is measured for its owner: a request that is
 * read, parsed, answered or refused, or a connection that is accepted and closed. What a round of the
 * event loop took besides measured work is divided by what arrived in it; the cost is the mean of these.
 */
export class ArrivalCost {
  #ms = assumedMs
  #arrived = 0
  #measured = 0
  #since: number | undefined

  /** The cost of one arrival, ms. */
  get ms(): number {
    return this.#ms
  }

  /** Notes that something has arrived. */
  note(): void {
    this.#arrived++
  }

  /** Notes so many ms of work that are measured for their owner. */
  noteMeasured(ms: number): void {
    this.#measured += ms
  }

  /** A round begins, in which the thread has no time to wait. */
  begin(now: number): void {
    this.#forget()
    this.#since = now
  }

  /** The round has ended. Nothing is learned from one that did not begin, or in which nothing came. */
  end(now: number): void {
    if (this.#since !== undefined && this.#arrived > 0) {
      const took = Math.max(0, now - this.#since - this.#measured)
      const weight = Math.min(1, this.#arrived / remembered)
      this.#ms += weight * (took / this.#arrived - this.#ms)
    }
    this.#forget()
  }

  #forget(): void {
    this.#since = undefined
    this.#arrived = 0
    this.#measured = 0
  }
}
