import { statSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { idOfTenant } from "../domain/event.ts"
import { timers } from "../time/timers.ts"
import { attemptRowsOf } from "./attempt-table.ts"
import {
  columns,
  endpointName,
  loggedRoundOf,
  rowOf,
  type StoredRow,
  trackedOf
} from "./columns.ts"
import type { Conditions } from "./conditions.ts"
import { attemptConditionsOf, conditionsOf, eventConditionsOf } from "./conditions.ts"
import type {
  AttemptPage,
  AttemptQuery,
  DeliveryLookup,
  DeliveryPage,
  DeliveryQuery,
  EventPage,
  EventQuery,
  LoggedDeliveries,
  LoggedEvent
} from "./delivery-log.ts"
import { maxLoggedRounds } from "./delivery-log.ts"
import { pageOf } from "./log-pages.ts"
import type { LoggedSums, SumsQuery } from "./log-sums.ts"
import type { Names } from "./names-table.ts"
import { NumberedNames, plainNames } from "./names-table.ts"
import { fileVersion } from "./projection-store.ts"
import { readSums } from "./rollup-reader.ts"
import { attemptSource, deliverySource, eventRowOf, eventSource } from "./row-sources.ts"
import { RowTable } from "./row-table.ts"
import { mainFile, segmentFile } from "./segment.ts"
import { positionAfter, positionOf, seqOf, type TrackedRound } from "./tracked-round.ts"
import { readUnwanted } from "./unwanted-events.ts"

/** How long a page searches, ms. */
const pageBudgetMs = 40
/** How far clocks of workers and broker may be apart, ms: beyond half of it nothing is recorded. */
const skewMs = 60_000

/** What finds any event by its sequence in EVENTS. */
const sequencePattern = /^evt_(\d{1,16})$/

/** Nothing can be read: there are no files, or none of this version. */
export class NoFiles extends Error {}

export type PageRows = Omit<DeliveryPage, "lag">
export type EventRows = Omit<EventPage, "lag">
export type AttemptRows = Omit<AttemptPage, "lag">

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

  /** Finds deliveries, newest first. @throws Invalid, NoFiles, or an error of SQLite. */
  find(query: DeliveryQuery): PageRows {
    return this.#atOneState((main, seq, base) => {
      const { state } = query
      const { ends, rows } = pageOf(query, {
        ...this.#factList(main, seq, query),
        name: "deliveries",
        search: (search, isOlder) => {
          const began = timers.monotonicMs()
          const through = (table: RowTable, withinMs: number) => {
            const conditions = conditionsOf(query, table.names)
            if (conditions === undefined) return
            search.through(deliverySource(table, conditions), began + withinMs)
          }
          if (state === undefined || state.includes("waiting")) through(main, this.#budgetMs / 2)
          if (state?.every((one) => one === "waiting") === true) return
          for (const table of this.#segmentsWithin(main, query, isOlder))
            through(table, this.#budgetMs)
        },
        rowsOf: ({ parts }) =>
          parts.map(({ row, source }) =>
            rowOf(trackedOf(row as StoredRow, source.table.names), base)
          )
      })
      return { deliveries: rows, ...ends }
    })
  }

  /** Finds attempts, newest first. @throws as `find` does. */
  findAttempts(query: AttemptQuery): AttemptRows {
    return this.#atOneState((main, seq, base) => {
      const { error, outcome, ...rest } = query
      const { ends, rows } = pageOf(query, {
        ...this.#factList(main, seq, query),
        name: "attempts",
        search: (search, isOlder) => {
          const deadline = timers.monotonicMs() + this.#budgetMs
          for (const table of this.#segmentsWithin(main, query, isOlder)) {
            const own = attemptConditionsOf(query, table.names)
            if (own !== undefined) search.through(attemptSource(table, own), deadline)
            // The successes that ended rounds, which have no error.
            if (error !== undefined || outcome === "failure") continue
            const told = conditionsOf({ ...rest, state: ["delivered"] }, table.names)
            if (told !== undefined) search.through(deliverySource(table, told), deadline)
          }
        },
        rowsOf: ({ parts }) => parts.flatMap((part) => attemptRowsOf(part, base))
      })
      return { attempts: rows, ...ends }
    })
  }

  /** Finds events, newest first. @throws as `find` does. */
  findEvents(query: EventQuery): EventRows {
    return this.#atOneState((main, seq) => {
      const { since, tenant } = query
      const visible = ["position < ?", positionAfter(seq)] as const
      const { ends, rows } = pageOf(query, {
        name: "events",
        range: {
          from: since === undefined ? 0 : this.#firstEventSince(main, since),
          below: Number.MAX_SAFE_INTEGER
        },
        // An event may have many deliveries: its steps are shorter.
        keysPerFact: 1 / 8,
        timeAt: (key) => this.#eventTimeAt(main, key),
        search: (search, isOlder) => {
          const began = timers.monotonicMs()
          const through = (table: RowTable, name: string, withinMs: number) => {
            const asked = eventConditionsOf(query, table.names)
            if (asked === undefined) return
            const [sql, below] = visible
            const conditions = { sql: [...asked.sql, sql], values: [...asked.values, below] }
            const source = eventSource(table, name, conditions, tenant !== undefined)
            search.through(source, began + withinMs)
          }
          through(main, main.name, this.#budgetMs / 2)
          const segments = this.#segmentsOf(main).map(({ table }) => table)
          for (const table of isOlder ? segments : segments.reverse())
            for (const name of [table.name, "unwanted"]) through(table, name, this.#budgetMs)
        },
        rowsOf: (found) => [eventRowOf(found)]
      })
      return { events: rows, ...ends }
    })
  }

  /**
   * Finds the rounds of an event, oldest first: by its id, or else by its sequence.
   *
   * @throws NoFiles, or an error of SQLite.
   */
  get({ endpoint, event, tenant }: DeliveryLookup): Omit<LoggedDeliveries, "lag"> {
    return this.#atOneState((main, seq, base) => {
      const segments = this.#segmentsOf(main)
      // SQLite would rather search by tenant or endpoint, and look at all of their rows.
      const find = (
        by: "event" | "event_seq",
        condition: string,
        values: ReadonlyArray<string | number>
      ) => {
        const rounds: Array<TrackedRound> = []
        const unwanted: Array<LoggedEvent> = []
        for (const table of [main, ...segments.map((one) => one.table)]) {
          const { name, names } = table
          const own = ownerConditions(names, tenant, endpoint)
          if (own === undefined) continue
          const read = (select: string, from: string, only: Conditions) =>
            [
              table.prepare(
                `SELECT ${select} FROM ${from} INDEXED BY ${from}_${by}
                 WHERE ${[condition, ...only.sql].join(" AND ")}
                 AND position < ? ORDER BY position DESC LIMIT ?`
              ),
              [...values, ...only.values, positionAfter(seq), maxLoggedRounds]
            ] as const
          const [query, all] = read(columns.join(", "), name, own.ofRounds)
          for (const row of query.all(...all) as unknown as Array<StoredRow>)
            rounds.push(trackedOf(row, names))
          if (table === main) continue
          const [events, some] = read("*", "unwanted", own.ofEvents)
          unwanted.push(...readUnwanted(events, names, ...some))
        }
        return {
          rounds: rounds
            .sort((a, b) => a.position - b.position)
            .filter((one) => endpoint === undefined || one.endpoint === endpoint)
            .slice(-maxLoggedRounds)
            .map((round) => loggedRoundOf(round, base)),
          unwanted: unwanted.sort((a, b) => a.eventSeq - b.eventSeq)
        }
      }
      const full = tenant === undefined ? event : idOfTenant(tenant, event)
      const byId = find("event", "event IN (?, ?)", [event, full])
      const eventSeq = sequencePattern.exec(event)?.[1]
      const isFound = byId.rounds.length + byId.unwanted.length > 0
      const found =
        isFound || eventSeq === undefined
          ? byId
          : find("event_seq", "event_seq = ?", [Number(eventSeq)])
      const filled = segments.filter((one) => one.newest > 0)
      const oldest = filled.length === 0 ? null : Math.min(...filled.map((one) => one.oldest))
      return { ...found, oldest, position: seq }
    })
  }

  /** Sums up hours. @throws Invalid, NoFiles, or an error of SQLite. */
  sums(query: SumsQuery): LoggedSums {
    return this.#atOneState((main) => readSums(main, query))
  }

  close(): void {
    for (const table of this.#segments.values()) table.close()
    this.#segments.clear()
    this.#main?.close()
    this.#main = undefined
  }

  /** @param read gets main.db, up to where it has read, and what was taken off sequences. */
  #atOneState<A>(read: (main: RowTable, seq: number, base: number) => A): A {
    const main = this.#open()
    main.prepare("BEGIN").run()
    try {
      const state = main.prepare("SELECT seq, base FROM state").get()
      return read(main, Number(state?.seq), Number(state?.base))
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

  /** The segments that may have rows of a time, those first where a search begins. */
  #segmentsWithin(
    main: RowTable,
    { since = 0, until = Number.MAX_SAFE_INTEGER }: Pick<DeliveryQuery, "since" | "until">,
    isOlder: boolean
  ): ReadonlyArray<RowTable> {
    const tables = this.#segmentsOf(main)
      .filter(({ newest, oldest }) => newest >= since && oldest <= until)
      .map(({ table }) => table)
    return isOlder ? tables : tables.reverse()
  }

  /** What lists in the order of facts have in common. */
  #factList(main: RowTable, seq: number, { since }: Pick<DeliveryQuery, "since">) {
    return {
      range: {
        from: since === undefined ? 1 : this.#firstSince(main, since),
        below: positionAfter(seq)
      },
      keysPerFact: positionOf(1, 0),
      timeAt: (position: number) => this.#timeAt(main, seqOf(position))
    }
  }

  /** The first position of rows that may be as new as a time. */
  #firstSince(main: RowTable, since: number): number {
    const row = main.prepare("SELECT max(seq) AS seq FROM moment WHERE ms < ?").get(since - skewMs)
    return row?.seq == null ? 1 : positionAfter(Number(row.seq))
  }

  /** A sequence that no event has which is as new as a time. */
  #firstEventSince(main: RowTable, since: number): number {
    const query = "SELECT max(event_seq) AS seq FROM event_moment WHERE ms < ?"
    return Number(main.prepare(query).get(since)?.seq ?? 0)
  }

  /** By when an event was stored at the latest, ms since the epoch. */
  #eventTimeAt(main: RowTable, seq: number): number {
    const query = "SELECT ms FROM event_moment WHERE event_seq >= ? ORDER BY event_seq LIMIT 1"
    return Number(main.prepare(query).get(seq)?.ms ?? timers.wallMs())
  }

  /** By when a fact was stored at the latest, ms since the epoch. */
  #timeAt(main: RowTable, seq: number): number {
    const query = "SELECT ms FROM moment WHERE seq >= ? ORDER BY seq LIMIT 1"
    return Number(main.prepare(query).get(seq)?.ms ?? timers.wallMs())
  }
}

/**
 * Returns what is asked of the rounds and events of a tenant, or of one of its endpoints; undefined
 * if a table has none of them. Limits then count no rows of others.
 */
const ownerConditions = (
  names: Names,
  tenant: string | undefined,
  endpoint: string | undefined
): { readonly ofRounds: Conditions; readonly ofEvents: Conditions } | undefined => {
  if (tenant === undefined) return { ofRounds: anyRow, ofEvents: anyRow }
  const owner = names.find(tenant)
  if (owner === undefined) return undefined
  const ofEvents = { sql: ["tenant = ?"], values: [owner] }
  if (endpoint === undefined) return { ofRounds: ofEvents, ofEvents }
  const named = names.find(endpointName(tenant, endpoint))
  // No number is negative: an event may be known of which the endpoint has no round.
  return { ofRounds: { sql: ["endpoint = ?"], values: [named ?? -1] }, ofEvents }
}

const anyRow: Conditions = { sql: [], values: [] }

/** Names of a file that are kept in memory: each row of a page has five. */
const namesInMemory = 2_000

const readOnly = (path: string): DatabaseSync => {
  const db = new DatabaseSync(path, { readOnly: true })
  db.exec("PRAGMA busy_timeout = 1000; PRAGMA cache_size = -2048")
  return db
}
