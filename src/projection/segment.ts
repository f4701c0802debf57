import { existsSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync, type StatementSync } from "node:sqlite"
import { attemptTable, type MadeAttempt, prepareAttempt } from "./attempt-table.ts"
import {
  columns,
  endpointName,
  insertInto,
  type StoredRow,
  tableOf,
  trackedOf,
  valuesOf
} from "./columns.ts"
import { GrowingNames, type Names, namesTable } from "./names-table.ts"
import type { RoundChange, TrackedRound } from "./tracked-round.ts"
import { prepareUnwanted, type UnwantedEvent, unwantedTable } from "./unwanted-events.ts"

/** What main.db tells of a file with ended rounds. Times in ms since the epoch. */
export interface SegmentRecord {
  readonly n: number
  /** Up to which fact it was written: a sequence in HISTORY. */
  through: number
  rows: number
  /** Events without rows. */
  unwanted: number
  /** Attempts with rows of their own. */
  attempts: number
  /** The range of the sequences of the rows' events. */
  firstEvent: number
  lastEvent: number
  oldest: number
  newest: number
}

export const newSegment = (n: number): SegmentRecord => ({
  n,
  through: 0,
  rows: 0,
  unwanted: 0,
  attempts: 0,
  firstEvent: Number.MAX_SAFE_INTEGER,
  lastEvent: 0,
  oldest: Number.MAX_SAFE_INTEGER,
  newest: 0
})

export const mainFile = (directory: string): string => join(directory, "main.db")
export const segmentFile = (directory: string, n: number): string =>
  join(directory, `segment-${n}.db`)
export const segmentFilePattern = /^segment-(\d+)\.db/

/** Identifies the file at a path; undefined if there is none. */
export const inodeOf = (path: string): number | undefined =>
  statSync(path, { throwIfNoEntry: false })?.ino

/** Removes a database with its log. */
export const removeDatabase = (path: string): void => {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true })
}

/** Removes all files of a projection, and nothing else that is there. */
export const removeFiles = (directory: string): void => {
  if (!existsSync(directory)) return
  removeDatabase(mainFile(directory))
  for (const name of readdirSync(directory)) {
    const n = segmentFilePattern.exec(name)?.[1]
    if (n !== undefined) removeDatabase(segmentFile(directory, Number(n)))
  }
}

/** Opens a database to write to it. @param cacheKiB of pages. */
export const openToWrite = (path: string, cacheKiB: number): DatabaseSync => {
  const db = new DatabaseSync(path)
  // What a power cut takes is noticed by `through`, and read from the history again.
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000;
    PRAGMA wal_autocheckpoint = 20000; PRAGMA cache_size = -${cacheKiB}`)
  return db
}

export const countOf = (db: DatabaseSync, table: string): number =>
  Number(db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows)

/** Finds rounds in a table, by event and endpoint. */
export class RoundFinder {
  readonly #select: StatementSync
  readonly #names: Names

  constructor(db: DatabaseSync, table: string, names: Names) {
    this.#names = names
    this.#select = db.prepare(
      `SELECT ${columns.join(", ")} FROM ${table} WHERE event = ? AND endpoint = ? AND event_seq = ?`
    )
  }

  /** Returns the rounds of an event for an endpoint. */
  all(
    event: string,
    tenant: string,
    of: Pick<RoundChange, "endpoint" | "eventAt" | "eventSeq">
  ): ReadonlyArray<TrackedRound> {
    const endpoint = this.#names.find(endpointName(tenant, of.endpoint))
    if (endpoint === undefined) return []
    const rows = this.#select.all(event, endpoint, of.eventSeq) as unknown as Array<StoredRow>
    return rows
      .filter((row) => row.event_at === of.eventAt)
      .map((row): TrackedRound => trackedOf(row, this.#names))
  }
}

/** What of a file is in memory: of the one that takes rows, and of others. */
const memoryOf = {
  active: { cacheKiB: 16_384, names: 50_000 },
  old: { cacheKiB: 512, names: 1_000 }
}

/** What a batch adds to a file. */
export interface NewRows {
  readonly ended: ReadonlyArray<TrackedRound>
  readonly unwanted: ReadonlyArray<UnwantedEvent>
  readonly attempts: ReadonlyArray<MadeAttempt>
}

/** A file with ended rounds, to write to. */
export class Segment {
  readonly record: SegmentRecord
  readonly db: DatabaseSync
  readonly finder: RoundFinder
  readonly #path: string
  readonly #inode: number | undefined
  readonly #names: GrowingNames
  readonly #insert: StatementSync
  readonly #remove: StatementSync
  readonly #insertUnwanted: (event: UnwantedEvent) => void
  readonly #insertAttempt: (attempt: MadeAttempt) => void
  readonly #through: StatementSync

  constructor(directory: string, record: SegmentRecord, isActive: boolean) {
    const { cacheKiB, names } = isActive ? memoryOf.active : memoryOf.old
    this.record = record
    this.#path = segmentFile(directory, record.n)
    this.db = openToWrite(this.#path, cacheKiB)
    this.#inode = inodeOf(this.#path)
    this.db.exec(
      `CREATE TABLE IF NOT EXISTS through (seq INTEGER NOT NULL);
      ${namesTable};
      ${tableOf("delivery", "INTEGER")}
      ${unwantedTable}
      ${attemptTable}`
    )
    if (this.db.prepare("SELECT seq FROM through").get() === undefined)
      this.db.exec("INSERT INTO through VALUES (0)")
    this.#names = new GrowingNames(this.db, names)
    this.finder = new RoundFinder(this.db, "delivery", this.#names)
    this.#insert = this.db.prepare(insertInto("delivery"))
    this.#insertUnwanted = prepareUnwanted(this.db, this.#names)
    this.#insertAttempt = prepareAttempt(this.db, this.#names)
    this.#remove = this.db.prepare("DELETE FROM delivery WHERE position = ?")
    this.#through = this.db.prepare("UPDATE through SET seq = ?")
  }

  /** False if the file was removed, or another one is in its place. */
  get isInPlace(): boolean {
    return inodeOf(this.#path) === this.#inode
  }

  /** Up to which fact the file itself says that it was written. */
  get through(): number {
    return Number(this.db.prepare("SELECT seq FROM through").get()?.seq)
  }

  storeThrough(seq: number): void {
    this.#through.run(seq)
  }

  put(row: TrackedRound): void {
    this.#insert.run(...valuesOf(row, this.#names))
  }

  remove(position: number): void {
    this.#remove.run(position)
  }

  /** Adds rows in one transaction. */
  append({ attempts, ended, unwanted }: NewRows, through: number): void {
    this.db.exec("BEGIN IMMEDIATE")
    for (const row of ended) this.put(row)
    for (const event of unwanted) this.#insertUnwanted(event)
    for (const attempt of attempts) this.#insertAttempt(attempt)
    this.#through.run(through)
    this.db.exec("COMMIT")
  }

  /** Gives back memory: rows are added to another file from now on. */
  retire(): void {
    const { cacheKiB, names } = memoryOf.old
    this.db.exec(`PRAGMA wal_checkpoint(TRUNCATE); PRAGMA cache_size = -${cacheKiB}`)
    this.#names.keep(names)
  }

  /** Gives back the memory of its pages until they are needed again. */
  releaseMemory(): void {
    this.db.exec("PRAGMA shrink_memory")
  }

  close(): void {
    this.db.close()
  }
}
