import { mkdirSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { millisOf } from "../broker/stream-message.ts"
import { endpointName, insertInto, tableOf, valuesOf } from "./columns.ts"
import { BrokenFiles, NewerFiles, OtherWriter } from "./file-problems.ts"
import { namesTable, WritableNames } from "./names-table.ts"
import { RecentEvents } from "./recent-events.ts"
import type { SegmentRecord } from "./segment.ts"
import {
  mainFile,
  newSegment,
  openToWrite,
  RoundFinder,
  removeDatabase,
  Segment,
  segmentFile,
  segmentFilePattern
} from "./segment.ts"
import type { TrackedRound } from "./tracked-round.ts"
import {
  changesOf,
  isOver,
  positionAfter,
  positionOf,
  readDeliveryFact,
  roundKeyOf,
  sentAgainIn
} from "./tracked-round.ts"

/** Version of the files. Files of an older one are made again. */
export const fileVersion = 1

/** How many rounds a file holds at most: a larger one takes rows at half the rate. */
const rowsPerSegment = 1_000_000
/** About what a row takes with its indexes, bytes. */
const rowBytes = 300
/** A file holds at most this part of what is kept, so that old rows go in time. */
const segmentsKept = 8

/** How often it is noted which facts were stored by when, ms: a search ends at its `since` by it. */
const betweenMomentsMs = 5_000

const cacheKiB = { main: 16_384, active: 49_152, old: 2_048 }

export interface StoreOptions {
  readonly directory: string
  /** How long ended rounds are kept, ms. */
  readonly keepMs: number
  /** How much disk they may take. */
  readonly maxBytes: number
}

/** Up to where the history was read. */
export interface StorePosition {
  /** Sequence of the last fact. */
  readonly seq: number
  /** When it was stored, ns since the epoch; empty if there was none. */
  readonly nanoseconds: string
}

/** A round under way in a batch: what is stored of it, and what it is now. */
interface Working {
  readonly stored: TrackedRound | undefined
  /** The file that it is stored in; undefined if it has not ended. */
  readonly segment: Segment | undefined
  now: TrackedRound | undefined
}

const schema = `
  CREATE TABLE IF NOT EXISTS state (
    seq INTEGER NOT NULL, nanoseconds TEXT NOT NULL, newest_event INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS segment (
    n INTEGER PRIMARY KEY, through INTEGER NOT NULL, rows INTEGER NOT NULL,
    first_event INTEGER NOT NULL, last_event INTEGER NOT NULL,
    oldest INTEGER NOT NULL, newest INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS moment (seq INTEGER PRIMARY KEY, ms INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS moment_ms ON moment (ms);
  CREATE TABLE IF NOT EXISTS change (
    segment INTEGER NOT NULL, position INTEGER NOT NULL, row TEXT);
  ${namesTable};
  ${tableOf("waiting")}
  PRAGMA user_version = ${fileVersion};`

/**
 * The files of the projection, for their one writer. main.db has the position in the history, the
 * rounds that have not ended, and the list of segments; a segment has ended rounds, in the order in
 * which they ended.
 *
 * A batch is one transaction of main.db. Its ended rounds are committed to the segment first: what a
 * crash leaves there beyond the position is removed at the next start. Changes of rows that were
 * stored before are noted in main.db, and carried out once it is committed.
 */
export class ProjectionStore {
  readonly #options: StoreOptions
  readonly #main: DatabaseSync
  readonly #names: WritableNames
  readonly #waiting: RoundFinder
  readonly #insertWaiting: StatementSync
  readonly #removeWaiting: StatementSync
  readonly #segments: Array<Segment> = []
  readonly #working = new Map<string, Working>()
  readonly #recent: RecentEvents
  #position: StorePosition
  /** Up to where the batch under way has read. */
  #next: StorePosition
  #waitingRows: number

  /** Opens the files, or makes them. @throws NewerFiles, or an error of SQLite. */
  constructor(options: StoreOptions) {
    this.#options = options
    mkdirSync(options.directory, { recursive: true, mode: 0o700 })
    this.#main = openToWrite(mainFile(options.directory), cacheKiB.main)
    const version = Number(this.#main.prepare("PRAGMA user_version").get()?.user_version)
    if (version > fileVersion) throw new NewerFiles(options.directory)
    this.#main.exec(schema)
    if (this.#main.prepare("SELECT seq FROM state").get() === undefined)
      this.#main.exec("INSERT INTO state VALUES (0, '', 0)")
    const state = this.#main.prepare("SELECT * FROM state").get() ?? {}
    this.#position = { seq: Number(state.seq), nanoseconds: String(state.nanoseconds) }
    this.#next = this.#position
    this.#recent = new RecentEvents(Number(state.newest_event))
    this.#names = new WritableNames(this.#main)
    this.#waiting = new RoundFinder(this.#main, "waiting", this.#names)
    this.#insertWaiting = this.#main.prepare(insertInto("waiting"))
    this.#removeWaiting = this.#main.prepare("DELETE FROM waiting WHERE position = ?")
    this.#waitingRows = countOf(this.#main, "waiting")
    this.#openSegments()
    this.#carryOutChanges()
  }

  get directory(): string {
    return this.#options.directory
  }

  /** Up to where the history was read and stored. */
  get position(): StorePosition {
    return this.#position
  }

  /** The rounds of the batch under way. */
  get pending(): number {
    return this.#working.size
  }

  /** Rounds that have ended, and that have not. */
  get rows(): { readonly ended: number; readonly waiting: number } {
    let ended = 0
    for (const { record } of this.#segments) ended += record.rows
    return { ended, waiting: this.#waitingRows }
  }

  /** When the oldest ended round that is kept ended, ms since the epoch. */
  get oldest(): number | null {
    const found = this.#segments.find(({ record }) => record.rows > 0)
    return found?.record.oldest ?? null
  }

  /** Bytes on disk. */
  get bytes(): number {
    let bytes = 0
    for (const name of readdirSync(this.#options.directory))
      bytes += statSync(join(this.#options.directory, name), { throwIfNoEntry: false })?.size ?? 0
    return bytes
  }

  /** Adds a fact to the batch under way. Facts come in the order of the history. */
  take(text: string, seq: number, nanoseconds: string): void {
    this.#next = { seq, nanoseconds }
    const fact = readDeliveryFact(text)
    if (fact === undefined) return
    const { tenant } = fact
    const event = fact.event ?? `evt_${fact.eventSeq}`
    const isNew = fact.eventSeq === undefined || !this.#recent.mayBeKnown(fact.eventSeq)
    for (const change of changesOf(fact, seq)) {
      let working = this.#working.get(change.key)
      if (working === undefined) {
        working = isNew ? unknown() : this.#find(change, tenant, event)
        this.#working.set(change.key, working)
      }
      working.now = change.apply(working.now)
    }
    const again = sentAgainIn(fact)
    if (again !== undefined) this.#markSentAgain(again, tenant)
  }

  /** Notes that there are no facts up to a sequence. */
  skipTo(seq: number): void {
    if (seq > this.#next.seq) this.#next = { seq, nanoseconds: "" }
  }

  /** Forgets the rounds that have not ended: facts that ended them may be lost. */
  forgetWaiting(): void {
    this.#main.exec("DELETE FROM waiting")
    this.#waitingRows = 0
  }

  /** Stores the batch under way. @throws an error of SQLite, or OtherWriter: open the files anew. */
  commit(): void {
    if (this.#next.seq === this.#position.seq) return
    this.#main.exec("BEGIN IMMEDIATE")
    const { seq } = this.#main.prepare("SELECT seq FROM state").get() ?? {}
    if (Number(seq) !== this.#position.seq) throw new OtherWriter(this.#options.directory)
    const ended = this.#storeWorking()
    this.#names.store(this.#main)
    if (ended.length > 0) this.#append(ended)
    this.#storePosition()
    this.#main.exec("COMMIT")
    this.#position = this.#next
    this.#working.clear()
    this.#carryOutChanges()
  }

  /** Removes what is too old or too much. Returns how many rounds it removed. */
  retain(now: number): number {
    const { directory, keepMs, maxBytes } = this.#options
    let removed = 0
    this.#main.prepare("DELETE FROM moment WHERE ms < ?").run(now - keepMs)
    while (true) {
      const [oldest] = this.#segments
      if (oldest === undefined || oldest.record.rows === 0) return removed
      const isOld = oldest.record.newest < now - keepMs
      if (!isOld && (this.#segments.length === 1 || this.bytes <= maxBytes)) return removed
      removed += oldest.record.rows
      this.#main.prepare("DELETE FROM segment WHERE n = ?").run(oldest.record.n)
      this.#segments.shift()
      oldest.close()
      removeDatabase(segmentFile(directory, oldest.record.n))
    }
  }

  /**
   * Forgets all that facts from a sequence on told, so that they are read again. What older facts
   * told is kept.
   */
  rewind(first: number): void {
    this.#working.clear()
    this.#next = { seq: first - 1, nanoseconds: "" }
    this.#main.exec("BEGIN IMMEDIATE")
    this.#main.prepare("DELETE FROM waiting WHERE position >= ?").run(positionOf(first, 0))
    this.#main.prepare("DELETE FROM moment WHERE seq >= ?").run(first)
    this.#storePosition()
    this.#main.exec("COMMIT")
    this.#position = this.#next
    this.#waitingRows = countOf(this.#main, "waiting")
    for (const segment of this.#segments) this.#trim(segment)
  }

  /** How many ended rounds are older than a fact. */
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

  close(): void {
    for (const segment of this.#segments) segment.close()
    this.#main.close()
  }

  #openSegments(): void {
    const { directory } = this.#options
    const known = this.#main.prepare("SELECT * FROM segment ORDER BY n").all()
    const numbers = new Set(known.map(({ n }) => Number(n)))
    for (const name of readdirSync(directory)) {
      const n = segmentFilePattern.exec(name)?.[1]
      // Its creation was not committed, or its removal was.
      if (n !== undefined && !numbers.has(Number(n)))
        removeDatabase(segmentFile(directory, Number(n)))
    }
    for (const [index, row] of known.entries()) {
      const record: SegmentRecord = {
        n: Number(row.n),
        through: Number(row.through),
        rows: Number(row.rows),
        firstEvent: Number(row.first_event),
        lastEvent: Number(row.last_event),
        oldest: Number(row.oldest),
        newest: Number(row.newest)
      }
      const isActive = index === known.length - 1
      const segment = this.#open(record, isActive ? cacheKiB.active : cacheKiB.old)
      if (segment.through < record.through) throw new BrokenFiles(directory)
      this.#trim(segment)
    }
  }

  /** Removes rows of facts beyond the position: their batch was not committed, or is read again. */
  #trim(segment: Segment): void {
    const { db, record } = segment
    const { seq } = this.#position
    if (segment.through <= seq) return
    db.prepare("DELETE FROM delivery WHERE position >= ?").run(positionAfter(seq))
    record.rows = countOf(db, "delivery")
    record.through = Math.min(record.through, seq)
    segment.storeThrough(record.through)
    this.#storeRecord(record)
  }

  #open(record: SegmentRecord, cache: number): Segment {
    const segment = new Segment(this.#options.directory, record, this.#names, cache)
    this.#segments.push(segment)
    return segment
  }

  #find(
    change: {
      readonly endpoint: string
      readonly eventSeq: number
      readonly eventAt: number
      readonly round: string
    },
    tenant: string,
    event: string
  ): Working {
    return (
      this.#rounds(change, tenant, event).find(
        ({ stored }) => stored?.round.round === change.round
      ) ?? unknown()
    )
  }

  /** Returns the stored rounds of an event for an endpoint. */
  #rounds(
    of: { readonly endpoint: string; readonly eventSeq: number; readonly eventAt: number },
    tenant: string,
    event: string
  ): ReadonlyArray<Working> {
    const endpoint = this.#names.numberOf(endpointName(tenant, of.endpoint))
    const working = (segment: Segment | undefined) => (stored: TrackedRound) => ({
      stored,
      segment,
      now: stored
    })
    const found: Array<Working> =
      this.#waitingRows === 0 ? [] : this.#waiting.all(event, endpoint, of).map(working(undefined))
    for (const segment of this.#segments) {
      const { firstEvent, lastEvent } = segment.record
      if (of.eventSeq < firstEvent || of.eventSeq > lastEvent) continue
      found.push(...segment.finder.all(event, endpoint, of).map(working(segment)))
    }
    return found
  }

  #markSentAgain(
    { dead, event, of }: NonNullable<ReturnType<typeof sentAgainIn>>,
    tenant: string
  ): void {
    for (const found of this.#rounds(of, tenant, event)) {
      if (found.stored === undefined) continue
      const key = roundKeyOf({ ...of, round: found.stored.round.round }, tenant)
      if (!this.#working.has(key)) this.#working.set(key, found)
    }
    const prefix = roundKeyOf({ ...of, round: "" }, tenant)
    for (const [key, working] of this.#working) {
      if (key.startsWith(prefix) && working.now?.round.end?.dead === dead)
        working.now = { ...working.now, redeliveredAs: of.round }
    }
  }

  /** Stores what has not ended and notes changes of older rows. Returns the rows that have ended. */
  #storeWorking(): Array<TrackedRound> {
    const ended: Array<TrackedRound> = []
    for (const { now, segment, stored } of this.#working.values()) {
      if (now === undefined || now === stored) continue
      if (segment !== undefined && stored !== undefined) {
        const isMoved = now.position !== stored.position
        this.#noteChange(segment, stored.position, isMoved ? undefined : now)
        if (isMoved) ended.push(now)
      } else if (isOver(now)) {
        if (stored !== undefined) {
          this.#removeWaiting.run(stored.position)
          this.#waitingRows--
        }
        ended.push(now)
      } else {
        this.#insertWaiting.run(...valuesOf(now, this.#names))
        if (stored === undefined) this.#waitingRows++
      }
    }
    return ended.sort((a, b) => a.position - b.position)
  }

  #append(ended: ReadonlyArray<TrackedRound>): void {
    const segment = this.#active(ended.length)
    const { record } = segment
    const { seq } = this.#next
    const rows = ended.map((tracked) => valuesOf(tracked, this.#names))
    this.#names.store(this.#main)
    segment.append(rows, seq)
    record.rows += rows.length
    record.through = seq
    for (const { eventSeq, round } of ended) {
      record.firstEvent = Math.min(record.firstEvent, eventSeq)
      record.lastEvent = Math.max(record.lastEvent, eventSeq)
      const at = round.end?.at ?? 0
      record.oldest = Math.min(record.oldest, at)
      record.newest = Math.max(record.newest, at)
    }
    this.#storeRecord(record)
  }

  /** The segment that takes rows now. */
  #active(rows: number): Segment {
    const last = this.#segments.at(-1)
    if (last === undefined) return this.#open(newSegment(1), cacheKiB.active)
    const { keepMs, maxBytes } = this.#options
    const most = Math.min(rowsPerSegment, Math.ceil(maxBytes / rowBytes / segmentsKept))
    const isFull = last.record.rows > 0 && last.record.rows + rows > most
    const isOld = last.record.newest - last.record.oldest > keepMs / segmentsKept
    if (!isFull && !isOld) return last
    last.db.exec(`PRAGMA wal_checkpoint(TRUNCATE); PRAGMA cache_size = -${cacheKiB.old}`)
    return this.#open(newSegment(last.record.n + 1), cacheKiB.active)
  }

  #storeRecord(record: SegmentRecord): void {
    this.#main
      .prepare("INSERT OR REPLACE INTO segment VALUES (?, ?, ?, ?, ?, ?, ?)")
      .run(
        record.n,
        record.through,
        record.rows,
        record.firstEvent,
        record.lastEvent,
        record.oldest,
        record.newest
      )
  }

  #storePosition(): void {
    const { nanoseconds, seq } = this.#next
    this.#main
      .prepare("UPDATE state SET seq = ?, nanoseconds = ?, newest_event = ?")
      .run(seq, nanoseconds, this.#recent.newest)
    const ms = nanoseconds === "" ? 0 : millisOf(nanoseconds)
    if (ms - this.#lastMoment < betweenMomentsMs) return
    this.#lastMoment = ms
    this.#main.prepare("INSERT OR REPLACE INTO moment VALUES (?, ?)").run(seq, ms)
  }
  #lastMoment = 0

  #noteChange(segment: Segment, position: number, now: TrackedRound | undefined): void {
    const row = now === undefined ? null : JSON.stringify(valuesOf(now, this.#names))
    this.#main.prepare("INSERT INTO change VALUES (?, ?, ?)").run(segment.record.n, position, row)
    if (now === undefined) {
      segment.record.rows--
      this.#storeRecord(segment.record)
    }
    this.#changes++
  }
  #changes = 1

  /** Carries out noted changes; a crash in between repeats them, with the same result. */
  #carryOutChanges(): void {
    if (this.#changes === 0) return
    for (const { position, row, segment: n } of this.#main.prepare("SELECT * FROM change").all()) {
      const segment = this.#segments.find(({ record }) => record.n === Number(n))
      if (row === null) segment?.remove(Number(position))
      else segment?.put(JSON.parse(String(row)))
    }
    this.#main.exec("DELETE FROM change")
    this.#changes = 0
  }
}

const countOf = (db: DatabaseSync, table: string): number =>
  Number(db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows)

const unknown = (): Working => ({ stored: undefined, segment: undefined, now: undefined })
