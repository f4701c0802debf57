import type { DatabaseSync } from "node:sqlite"

/** How often it is noted which facts and events were stored by when, ms. */
const intervalMs = 5_000

export const storedTimesTables = `
  CREATE TABLE IF NOT EXISTS moment (seq INTEGER PRIMARY KEY, ms INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS moment_ms ON moment (ms);
  CREATE TABLE IF NOT EXISTS event_moment (event_seq INTEGER PRIMARY KEY, ms INTEGER NOT NULL);`

/**
 * Which facts and which events were stored by when, ms since the epoch, to some seconds: a search
 * ends at its `since` by it. Each call belongs to a transaction of main.db.
 */
export class StoredTimes {
  readonly #main: DatabaseSync
  #lastFactAt = 0
  #lastEventAt = 0
  /** The event that was stored last, of those that facts have told of. */
  #newest = { seq: 0, at: 0 }

  constructor(main: DatabaseSync) {
    this.#main = main
  }

  /** Notes that a fact is about an event. */
  see(seq: number, at: number): void {
    if (at > this.#newest.at) this.#newest = { seq, at }
  }

  /** Stores when the last fact of a batch was stored, and the newest event. */
  store(seq: number, factAt: number): void {
    this.#storeEvent()
    if (factAt - this.#lastFactAt < intervalMs) return
    this.#lastFactAt = factAt
    this.#main.prepare("INSERT OR REPLACE INTO moment VALUES (?, ?)").run(seq, factAt)
  }

  /** Removes what is older than a time. */
  retain(since: number): void {
    for (const table of ["moment", "event_moment"])
      this.#main.prepare(`DELETE FROM ${table} WHERE ms < ?`).run(since)
  }

  /** Forgets the facts from a sequence on. */
  forgetFrom(seq: number): void {
    this.#main.prepare("DELETE FROM moment WHERE seq >= ?").run(seq)
  }

  #storeEvent(): void {
    const { at, seq } = this.#newest
    if (at - this.#lastEventAt < intervalMs) return
    this.#lastEventAt = at
    // A stream that lost its end gives sequences again.
    this.#main.prepare("DELETE FROM event_moment WHERE event_seq >= ?").run(seq)
    this.#main.prepare("INSERT INTO event_moment VALUES (?, ?)").run(seq, at)
  }
}
