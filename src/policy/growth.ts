/** How the number of waiting deliveries has changed within a window. */
export interface WaitingGrowth {
  readonly by: number
  /** True if more wait than half a window ago. */
  readonly goesOn: boolean
}

/** Records the number of waiting deliveries over time. Times in ms since the epoch. */
export class Growth {
  #looks: Array<{ readonly at: number; readonly waiting: number }> = []

  note(at: number, waiting: number): void {
    this.#looks.push({ at, waiting })
  }

  /**
   * Returns the growth within the window that ends at `at`; undefined if the records do not go back
   * that far.
   */
  within(window: number, at: number): WaitingGrowth | undefined {
    const first = this.#looks.findLastIndex((look) => look.at <= at - window)
    if (first > 0) this.#looks = this.#looks.slice(first)
    const [begin] = this.#looks
    const middle = this.#looks.findLast((look) => look.at <= at - window / 2)
    const now = this.#looks.at(-1)
    if (begin === undefined || middle === undefined || now === undefined) return undefined
    if (begin.at > at - window) return undefined
    return { by: now.waiting - begin.waiting, goesOn: now.waiting > middle.waiting }
  }
}
