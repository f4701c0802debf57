import { readdirSync } from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import { BrokenFiles } from "./file-problems.ts"
import type { NewRows, SegmentRecord } from "./segment.ts"
import {
  countOf,
  newSegment,
  removeDatabase,
  Segment,
  segmentFile,
  segmentFilePattern
} from "./segment.ts"
import type { RoundChange, TrackedRound } from "./tracked-round.ts"
import { positionAfter, positionOf } from "./tracked-round.ts"

/** How many rows a file holds at most: a larger one takes rows at half the rate. */
const rowsPerSegment = 1_000_000
/** About what a row takes with its indexes, bytes. */
const rowBytes = 300
/** A file holds at most this part of what is kept, so that old rows go in time. */
const segmentsKept = 8

export const segmentTables = `
  CREATE TABLE IF NOT EXISTS segment (
    n INTEGER PRIMARY KEY, through INTEGER NOT NULL, rows INTEGER NOT NULL,
    unwanted INTEGER NOT NULL, attempts INTEGER NOT NULL,
    first_event INTEGER NOT NULL, last_event INTEGER NOT NULL,
    oldest INTEGER NOT NULL, newest INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS change (
    segment INTEGER NOT NULL, position INTEGER NOT NULL, row TEXT);`

export interface SegmentOptions {
  readonly directory: string
  /** How long ended rounds are kept, ms. */
  readonly keepMs: number
  /** How much disk they may take. */
  readonly maxBytes: number
}

/** A round that has ended, and where it is stored. */
interface EndedRound {
  readonly segment: Segment
  readonly stored: TrackedRound
}

const recordOf = (row: Readonly<Record<string, unknown>>): SegmentRecord => ({
  n: Number(row.n),
  through: Number(row.through),
  rows: Number(row.rows),
  unwanted: Number(row.unwanted),
  attempts: Number(row.attempts),
  firstEvent: Number(row.first_event),
  lastEvent: Number(row.last_event),
  oldest: Number(row.oldest),
  newest: Number(row.newest)
})

/** How much of a file is taken, in rows. */
const filled = ({ attempts, rows, unwanted }: SegmentRecord): number => rows + unwanted + attempts

/** The files with ended rounds, oldest first. main.db lists them, and its transactions are the caller's. */
export class SegmentList {
  readonly #options: SegmentOptions
  readonly #main: DatabaseSync
  readonly #segments: Array<Segment> = []
  /** True if main.db may have changes that are not carried out. */
  #hasChanges = true

  /** @param seq up to which fact the history was read. */
  constructor(options: SegmentOptions, main: DatabaseSync, seq: number) {
    this.#options = options
    this.#main = main
    const { directory } = options
    const known = main.prepare("SELECT * FROM segment ORDER BY n").all().map(recordOf)
    const numbers = new Set(known.map(({ n }) => n))
    for (const name of readdirSync(directory)) {
      const n = Number(segmentFilePattern.exec(name)?.[1] ?? 0)
      // Its creation was not committed, or its removal was.
      if (n > 0 && !numbers.has(n)) removeDatabase(segmentFile(directory, n))
    }
    for (const [index, record] of known.entries()) {
      const segment = this.#open(record, index === known.length - 1)
      if (segment.through < record.through) throw new BrokenFiles(directory)
    }
    this.trim(seq)
    this.applyChanges()
  }

  get rows(): number {
    let rows = 0
    for (const { record } of this.#segments) rows += record.rows
    return rows
  }

  /** False if a file was removed, or another one is in its place. */
  get areInPlace(): boolean {
    return this.#segments.every(({ isInPlace }) => isInPlace)
  }

  /** When the oldest round ended, ms since the epoch. */
  get oldest(): number | null {
    return this.#segments.find(({ record }) => record.rows > 0)?.record.oldest ?? null
  }

  /** Returns the rounds of an event for an endpoint. */
  find(
    of: Pick<RoundChange, "endpoint" | "eventAt" | "eventSeq">,
    event: string,
    tenant: string
  ): ReadonlyArray<EndedRound> {
    const found: Array<EndedRound> = []
    for (const segment of this.#segments) {
      const { firstEvent, lastEvent } = segment.record
      if (of.eventSeq < firstEvent || of.eventSeq > lastEvent) continue
      for (const stored of segment.finder.all(event, tenant, of)) found.push({ segment, stored })
    }
    return found
  }

  /** Commits rows to the newest file, or to a new one where that is full. */
  append(added: NewRows, seq: number): void {
    const { attempts, ended, unwanted } = added
    const count = ended.length + unwanted.length + attempts.length
    if (count === 0) return
    const segment = this.#active(count, seq)
    const { record } = segment
    segment.append(added, seq)
    record.rows += ended.length
    record.unwanted += unwanted.length
    record.attempts += attempts.length
    record.through = seq
    const note = (at: number) => {
      record.oldest = Math.min(record.oldest, at)
      record.newest = Math.max(record.newest, at)
    }
    for (const { eventAt } of unwanted) note(eventAt)
    for (const { attempt } of attempts) note(attempt.at)
    for (const { eventSeq, round } of ended) {
      record.firstEvent = Math.min(record.firstEvent, eventSeq)
      record.lastEvent = Math.max(record.lastEvent, eventSeq)
      note(round.end?.at ?? 0)
    }
    this.#storeRecord(record)
  }

  /** Removes rows of facts beyond a sequence: their batch was not committed, or is read again. */
  trim(seq: number): void {
    for (const segment of this.#segments) {
      const { db, record } = segment
      if (segment.through <= seq) continue
      for (const table of ["delivery", "unwanted", "attempt"])
        db.prepare(`DELETE FROM ${table} WHERE position >= ?`).run(positionAfter(seq))
      record.rows = countOf(db, "delivery")
      record.unwanted = countOf(db, "unwanted")
      record.attempts = countOf(db, "attempt")
      record.through = Math.min(record.through, seq)
      segment.storeThrough(record.through)
      this.#storeRecord(record)
    }
  }

  /** How many rounds ended by facts below a sequence. */
  rowsBefore(first: number): number {
    let rows = 0
    for (const { db, record } of this.#segments) {
      if (record.through < first) rows += record.rows
      else {
        const query = "SELECT count(*) AS rows FROM delivery WHERE position < ?"
        rows += Number(db.prepare(query).get(positionOf(first, 0))?.rows)
      }
    }
    return rows
  }

  /**
   * Removes the oldest file if it is too old, or if all files are too much.
   *
   * @param bytes of all files.
   * @returns how many rounds it had; undefined if it was kept.
   */
  dropOldest(now: number, bytes: number): number | undefined {
    const { directory, keepMs, maxBytes } = this.#options
    const [oldest] = this.#segments
    if (oldest === undefined || filled(oldest.record) === 0) return undefined
    const isOld = oldest.record.newest < now - keepMs
    if (!isOld && (this.#segments.length === 1 || bytes <= maxBytes)) return undefined
    this.#main.prepare("DELETE FROM segment WHERE n = ?").run(oldest.record.n)
    this.#segments.shift()
    oldest.close()
    removeDatabase(segmentFile(directory, oldest.record.n))
    return oldest.record.rows
  }

  /**
   * Notes a change of a row that was stored before, within a transaction of main.db. It is carried
   * out once that is committed.
   *
   * @param row what it is now; undefined to remove it.
   */
  noteChange(segment: Segment, position: number, row: TrackedRound | undefined): void {
    const text = row === undefined ? null : JSON.stringify(row)
    this.#main.prepare("INSERT INTO change VALUES (?, ?, ?)").run(segment.record.n, position, text)
    if (row === undefined) {
      segment.record.rows--
      this.#storeRecord(segment.record)
    }
    this.#hasChanges = true
  }

  /** Carries out noted changes; a crash in between repeats them, with the same result. */
  applyChanges(): void {
    if (!this.#hasChanges) return
    for (const { position, row, segment: n } of this.#main.prepare("SELECT * FROM change").all()) {
      const segment = this.#segments.find(({ record }) => record.n === Number(n))
      if (row === null) segment?.remove(Number(position))
      else segment?.put(JSON.parse(String(row)))
    }
    this.#main.exec("DELETE FROM change")
    this.#hasChanges = false
  }

  /** Gives back the memory of pages until they are needed again. */
  releaseMemory(): void {
    for (const segment of this.#segments) segment.releaseMemory()
  }

  close(): void {
    for (const segment of this.#segments) segment.close()
  }

  #open(record: SegmentRecord, isActive: boolean): Segment {
    const segment = new Segment(this.#options.directory, record, isActive)
    this.#segments.push(segment)
    return segment
  }

  /** The file that takes rows now. */
  #active(rows: number, seq: number): Segment {
    const last = this.#segments.at(-1)
    // No number is used again while a reader may have the file of the former one open.
    const next = Math.max(seq, (last?.record.n ?? 0) + 1)
    if (last === undefined) return this.#open(newSegment(next), true)
    const { keepMs, maxBytes } = this.#options
    const most = Math.min(rowsPerSegment, Math.ceil(maxBytes / rowBytes / segmentsKept))
    const isFull = filled(last.record) > 0 && filled(last.record) + rows > most
    const isOld = last.record.newest - last.record.oldest > keepMs / segmentsKept
    if (!isFull && !isOld) return last
    last.retire()
    return this.#open(newSegment(next), true)
  }

  #storeRecord(record: SegmentRecord): void {
    const { attempts, firstEvent, lastEvent, n, newest, oldest, rows, through, unwanted } = record
    this.#main
      .prepare("INSERT OR REPLACE INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(n, through, rows, unwanted, attempts, firstEvent, lastEvent, oldest, newest)
  }
}
