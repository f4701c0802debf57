import { statSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { idOfTenant } from "../domain/event.ts"
import { timers } from "../time/timers.ts"
import { columns, loggedRoundOf, rowOf, type StoredRow, trackedOf } from "./columns.ts"
import { conditionsOf } from "./conditions.ts"
import { readCursor, writeCursor } from "./cursor.ts"
import type {
  DeliveryLookup,
  DeliveryPage,
  DeliveryQuery,
  LoggedDeliveries,
  LoggedEvent
} from "./delivery-log.ts"
import { defaultPageRows, maxLoggedRounds } from "./delivery-log.ts"
import { NumberedNames, plainNames } from "./names-table.ts"
import { fileVersion } from "./projection-store.ts"
import { RowSearch, RowTable, type Searched } from "./row-search.ts"
import { mainFile, segmentFile } from "./segment.ts"
import { positionAfter, seqOf, type TrackedRound } from "./tracked-round.ts"
import { readUnwanted } from "./unwanted-events.ts"

/** How long a page searches, ms. */
export const pageBudgetMs = 40
/** How far clocks of workers and broker may be apart, ms: beyond half of it nothing is recorded. */
const skewMs = 60_000

/** What finds any event by its sequence in EVENTS. */
const sequencePattern = /^evt_(\d{1,16})$/

/** Nothing can be read: there are no files, or none of this version. */
export class NoFiles extends Error {}

export type PageRows = Omit<DeliveryPage, "lag">

/**
 * Reads the files of a projection while its writer goes on. A page is taken from one state of
 * main.db, and of the segments only what belongs to that state.
 */
export class LogReader {
  readonly #directory: string
  readonly #budgetMs: number
  #main: RowTable | undefined
  /** Identifies the file of `#main`. */
  #file: number | undefined
  readonly #segments = new Map<number, RowTable>()

  constructor(directory: string, budgetMs: number = pageBudgetMs) {
    this.#directory = directory
    this.#budgetMs = budgetMs
  }

  /** Finds rows, newest first. @throws Invalid, NoFiles, or an error of SQLite. */
  find(query: DeliveryQuery): PageRows {
    const cursor = readCursor(query)
    return this.#atOneState((main, seq) => {
      const { limit = defaultPageRows, state } = query
      const upper = Math.min(cursor ?? Number.MAX_SAFE_INTEGER, positionAfter(seq))
      const lowest = query.since === undefined ? 1 : this.#firstSince(main, query.since)
      const now = timers.monotonicMs()
      const search = (deadlineMs: number) => new RowSearch(limit + 1, lowest, now + deadlineMs)
      const waiting = search(this.#budgetMs / 2)
      const conditions = conditionsOf(query, main.names)
      if (conditions !== undefined && (state === undefined || state === "waiting"))
        waiting.through(main, conditions, upper)
      const ended = search(this.#budgetMs)
      if (state !== "waiting") this.#searchSegments(main, ended, query, upper)
      return this.#pageOf(main, query, limit, [waiting.found, ended.found])
    })
  }

  /**
   * Finds the rounds of an event, oldest first: by its id, or else by its sequence.
   *
   * @throws NoFiles, or an error of SQLite.
   */
  get({ endpoint, event, tenant }: DeliveryLookup): Omit<LoggedDeliveries, "lag"> {
    return this.#atOneState((main, seq) => {
      const segments = this.#segmentsOf(main)
      const find = (conditions: string, values: ReadonlyArray<string | number>) => {
        const where = `WHERE ${conditions} AND position < ? LIMIT ?`
        const all = [...values, positionAfter(seq), maxLoggedRounds]
        const rounds: Array<TrackedRound> = []
        const unwanted: Array<LoggedEvent> = []
        for (const table of [main, ...segments.map((one) => one.table)]) {
          const query = `SELECT ${columns.join(", ")} FROM ${table.name} ${where}`
          const found = table.prepare(query).all(...all) as unknown as Array<StoredRow>
          for (const row of found) rounds.push(trackedOf(row, table.names))
          if (table === main) continue
          const events = table.prepare(`SELECT * FROM unwanted ${where}`)
          unwanted.push(...readUnwanted(events, table.names, ...all))
        }
        const isOwn = (one: { readonly tenant: string }) =>
          tenant === undefined || one.tenant === tenant
        return {
          rounds: rounds
            .sort((a, b) => a.position - b.position)
            .filter(isOwn)
            .filter((one) => endpoint === undefined || one.endpoint === endpoint)
            .slice(-maxLoggedRounds)
            .map(loggedRoundOf),
          unwanted: unwanted.filter(isOwn).sort((a, b) => a.eventSeq - b.eventSeq)
        }
      }
      const full = tenant === undefined ? event : idOfTenant(tenant, event)
      const byId = find("event IN (?, ?)", [event, full])
      const eventSeq = sequencePattern.exec(event)?.[1]
      const isFound = byId.rounds.length + byId.unwanted.length > 0
      const found =
        isFound || eventSeq === undefined ? byId : find("event_seq = ?", [Number(eventSeq)])
      const filled = segments.filter((one) => one.newest > 0)
      const oldest = filled.length === 0 ? null : Math.min(...filled.map((one) => one.oldest))
      return { ...found, oldest }
    })
  }

  close(): void {
    for (const table of this.#segments.values()) table.close()
    this.#segments.clear()
    this.#main?.close()
    this.#main = undefined
  }

  #atOneState<A>(read: (main: RowTable, seq: number) => A): A {
    const main = this.#open()
    main.prepare("BEGIN").run()
    try {
      return read(main, Number(main.prepare("SELECT seq FROM state").get()?.seq))
    } finally {
      main.prepare("COMMIT").run()
    }
  }

  #open(): RowTable {
    const path = mainFile(this.#directory)
    const file = statSync(path, { throwIfNoEntry: false })?.ino
    // All files may have been made anew.
    if (file !== this.#file) this.close()
    if (file === undefined) throw new NoFiles("it has not begun to read the history")
    if (this.#main !== undefined) return this.#main
    const db = readOnly(path)
    const version = Number(db.prepare("PRAGMA user_version").get()?.user_version)
    if (version !== fileVersion) {
      db.close()
      throw new NoFiles("its files are of another version, or not made yet")
    }
    this.#main = new RowTable(db, "waiting", plainNames)
    this.#file = file
    return this.#main
  }

  /** The segments, newest first; forgets what was removed. */
  #segmentsOf(main: RowTable) {
    const records = main.prepare("SELECT * FROM segment ORDER BY n DESC").all()
    const numbers = new Set(records.map(({ n }) => Number(n)))
    for (const [n, table] of this.#segments)
      if (!numbers.has(n)) {
        table.close()
        this.#segments.delete(n)
      }
    return records.map((record) => {
      const n = Number(record.n)
      let table = this.#segments.get(n)
      if (table === undefined) {
        const db = readOnly(segmentFile(this.#directory, n))
        table = new RowTable(db, "delivery", new NumberedNames(db, namesInMemory))
        this.#segments.set(n, table)
      }
      return { table, oldest: Number(record.oldest), newest: Number(record.newest) }
    })
  }

  #searchSegments(main: RowTable, search: RowSearch, query: DeliveryQuery, upper: number): void {
    const { since = 0, until = Number.MAX_SAFE_INTEGER } = query
    for (const { newest, oldest, table } of this.#segmentsOf(main)) {
      if (newest < since || oldest > until) continue
      const conditions = conditionsOf(query, table.names)
      if (conditions !== undefined && !search.through(table, conditions, upper)) return
    }
  }

  #pageOf(
    main: RowTable,
    query: DeliveryQuery,
    limit: number,
    found: ReadonlyArray<Searched>
  ): PageRows {
    const floor = Math.max(...found.map((one) => one.floor))
    const rows = found
      .flatMap((one) => one.rows)
      .filter(({ position }) => position >= floor)
      .sort((a, b) => b.position - a.position)
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    const deliveries = page.map(({ names, row }) => rowOf(trackedOf(row, names)))
    if (rows.length > limit && last !== undefined)
      return {
        deliveries,
        searchedUntil: null,
        cursor: writeCursor(query, last.position)
      }
    return floor === 0
      ? { deliveries, searchedUntil: null, cursor: null }
      : {
          deliveries,
          searchedUntil: this.#timeAt(main, seqOf(floor)),
          cursor: writeCursor(query, floor)
        }
  }

  /** The first position of rows that may be as new as a time. */
  #firstSince(main: RowTable, since: number): number {
    const row = main.prepare("SELECT max(seq) AS seq FROM moment WHERE ms < ?").get(since - skewMs)
    return row?.seq == null ? 1 : positionAfter(Number(row.seq))
  }

  /** By when a fact was stored at the latest, ms since the epoch. */
  #timeAt(main: RowTable, seq: number): number {
    const query = "SELECT ms FROM moment WHERE seq >= ? ORDER BY seq LIMIT 1"
    return Number(main.prepare(query).get(seq)?.ms ?? timers.wallMs())
  }
}
/** Names of a file that are kept in memory: each row of a page has five. */
const namesInMemory = 2_000

const readOnly = (path: string): DatabaseSync => {
  const db = new DatabaseSync(path, { readOnly: true })
  db.exec("PRAGMA busy_timeout = 1000; PRAGMA cache_size = -8192")
  return db
}
