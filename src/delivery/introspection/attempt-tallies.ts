import type { LiveEndpoint } from "../../endpoints/directory.ts"
import type { Counts } from "../../policy/tally.ts"
import { noCounts, Tally } from "../../policy/tally.ts"

/** Interval at which finished tallies are removed, ms. */
const tidyPause = 10 * 60_000

interface Page {
  readonly generation: string
  readonly tally: Tally
}

/**
 * Counts the attempts of the last hour in one partition: in total, and per endpoint with attempts.
 */
export class AttemptTallies {
  readonly #all = new Tally()
  readonly #pages = new Map<string, Page>()
  #tidyAt = 0

  /**
   * Counts an attempt.
   *
   * @param ms its duration.
   * @param at when it ended, ms since the epoch.
   */
  note(
    { config: { generation }, key }: Pick<LiveEndpoint, "config" | "key">,
    delivered: boolean,
    ms: number,
    at: number
  ): void {
    if (at >= this.#tidyAt) this.#tidy(at)
    this.#all.note(delivered, ms, at)
    let page = this.#pages.get(key)
    // An endpoint that was recreated under the same name starts from zero.
    if (page === undefined || page.generation !== generation) {
      page = { generation, tally: new Tally() }
      this.#pages.set(key, page)
    }
    page.tally.note(delivered, ms, at)
  }

  /**
   * Returns the counts of the hour before a time (ms since the epoch), of one endpoint or in total.
   */
  read(at: number, key?: string): Counts {
    const tally = key === undefined ? this.#all : this.#pages.get(key)?.tally
    return tally?.read(at) ?? noCounts
  }

  /** Returns the keys of endpoints with attempts. */
  keys(): Iterable<string> {
    return this.#pages.keys()
  }

  #tidy(at: number): void {
    this.#tidyAt = at + tidyPause
    for (const [key, { tally }] of this.#pages) if (tally.isOver(at)) this.#pages.delete(key)
  }
}
