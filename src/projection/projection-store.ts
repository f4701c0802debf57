import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { makeDirectory } from "../broker/embedded/make-directory.ts"
import { millisOf } from "../broker/stream-message.ts"
import { type Fact, isSuccess } from "../domain/fact.ts"
import type { ReadingPosition } from "../history/reading-position.ts"
import { attemptsSince, type MadeAttempt } from "./attempt-table.ts"
import { insertInto, tableOf, valuesOf } from "./columns.ts"
import type { SumsFill } from "./delivery-log.ts"
import { NewerFiles, OlderFiles } from "./file-problems.ts"
import { plainNames } from "./names-table.ts"
import { RecentEvents } from "./recent-events.ts"
import { Rollups, rollupTable } from "./rollups.ts"
import {
  countOf,
  inodeOf,
  mainFile,
  type NewRows,
  openToWrite,
  RoundFinder,
  type Segment
} from "./segment.ts"
import { SegmentList, type SegmentOptions, segmentTables } from "./segment-list.ts"
import { StoredTimes, storedTimesTables } from "./stored-times.ts"
import type { TrackedRound } from "./tracked-round.ts"
import {
  baseOf,
  changesOf,
  isOver,
  positionOf,
  readDeliveryFact,
  roundKeyOf,
  sentAgainIn
} from "./tracked-round.ts"
import { type UnwantedEvent, unwantedIn } from "./unwanted-events.ts"

/** Version of the files. Files of an older one are made again. */
export const fileVersion = 8

const mainCacheKiB = 8_192

export type StoreOptions = SegmentOptions

/** A round under way in a batch: what is stored of it, and what it is now. */
interface Working {
  readonly stored: TrackedRound | undefined
  /** The file that it is stored in; undefined if it has not ended. */
  readonly segment: Segment | undefined
  now: TrackedRound | undefined
}

const schema = `
  CREATE TABLE IF NOT EXISTS state (
    seq INTEGER NOT NULL, base INTEGER NOT NULL, nanoseconds TEXT NOT NULL,
    newest_event INTEGER NOT NULL, repeated_attempts INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS installation (id TEXT NOT NULL);
  ${storedTimesTables}
  ${segmentTables}
  ${tableOf("waiting", "TEXT")}
  ${rollupTable}
  PRAGMA user_version = ${fileVersion};`

/** Opens main.db, or makes it. @throws NewerFiles, OlderFiles, or an error of SQLite. */
const openMain = (directory: string): DatabaseSync => {
  const main = openToWrite(mainFile(directory), mainCacheKiB)
  const version = Number(main.prepare("PRAGMA user_version").get()?.user_version)
  if (version === 0 || version === fileVersion) return main
  main.close()
  throw version > fileVersion ? new NewerFiles(directory) : new OlderFiles(directory)
}

/**
 * The files of the projection, for their one writer, who has the lock of the directory. main.db has
 * the position in the history, the rounds that have not ended, and the list of segments; a segment
 * has ended rounds, in the order in which they ended.
 *
 * Shared texts are numbers in a segment, which has a table of them, and go with it. main.db has them as
 * they are: its rows come and go, and would leave names behind that nothing removes.
 *
 * A batch is one transaction of main.db. Its ended rounds are committed to the segment first: what a
 * crash leaves there beyond the position is removed at the next start. Changes of rows that were
 * stored before are noted in main.db, and carried out once it is committed.
 */
export class ProjectionStore {
  readonly #options: StoreOptions
  readonly #main: DatabaseSync
  readonly #inode: number | undefined
  readonly #waiting: RoundFinder
  readonly #insertWaiting: StatementSync
  readonly #removeWaiting: StatementSync
  readonly #segments: SegmentList
  readonly #working = new Map<string, Working>()
  /** Of the batch under way. */
  readonly #unwanted: Array<UnwantedEvent> = []
  readonly #recent: RecentEvents
  readonly #rollups: Rollups
  readonly #times: StoredTimes
  /** What is taken off sequences in the history, in all files and in this class. */
  #base: number
  #position: ReadingPosition
  /** Up to where the batch under way has read. */
  #next: ReadingPosition
  #waitingRows: number
  #repeatedAttempts: number

  /** Opens the files, or makes them. @throws NewerFiles, or an error of SQLite. */
  constructor(options: StoreOptions) {
    this.#options = options
    makeDirectory(options.directory, 0o700)
    this.#main = openMain(options.directory)
    this.#inode = inodeOf(mainFile(options.directory))
    this.#main.exec(schema)
    if (this.#main.prepare("SELECT seq FROM state").get() === undefined)
      this.#main.exec("INSERT INTO state VALUES (0, 0, '', 0, 0)")
    const state = this.#main.prepare("SELECT * FROM state").get() ?? {}
    this.#base = Number(state.base)
    this.#position = { seq: Number(state.seq), nanoseconds: String(state.nanoseconds) }
    this.#next = this.#position
    this.#repeatedAttempts = Number(state.repeated_attempts)
    this.#recent = new RecentEvents(Number(state.newest_event))
    this.#waiting = new RoundFinder(this.#main, "waiting", plainNames)
    this.#insertWaiting = this.#main.prepare(insertInto("waiting"))
    this.#removeWaiting = this.#main.prepare("DELETE FROM waiting WHERE position = ?")
    this.#waitingRows = countOf(this.#main, "waiting")
    this.#rollups = new Rollups(this.#main, options.maxBytes)
    this.#times = new StoredTimes(this.#main)
    this.#segments = new SegmentList(options, this.#main, this.#position.seq)
  }

  get directory(): string {
    return this.#options.directory
  }

  /** Up to where the history was read and stored. Its `seq` is 0 if nothing was read. */
  get position(): ReadingPosition {
    const { nanoseconds, seq } = this.#position
    return { seq: seq === 0 ? 0 : this.#base + seq, nanoseconds }
  }

  /** The id of the installation that the files are of; undefined if none is noted. */
  get installation(): string | undefined {
    const noted = this.#main.prepare("SELECT id FROM installation").get()
    return noted === undefined ? undefined : String(noted.id)
  }

  /** Notes of which installation the files are. */
  noteInstallation(id: string): void {
    if (this.installation === id) return
    this.#main.exec("BEGIN IMMEDIATE")
    this.#main.exec("DELETE FROM installation")
    this.#main.prepare("INSERT INTO installation VALUES (?)").run(id)
    this.#main.exec("COMMIT")
  }

  /** The rounds of the batch under way. */
  get pending(): number {
    return this.#working.size
  }

  /** Rounds that have ended, and that have not. */
  get rows(): { readonly ended: number; readonly waiting: number } {
    return { ended: this.#segments.rows, waiting: this.#waitingRows }
  }

  /** Attempts that were recorded again, since the files were made or the history was read again. */
  get repeatedAttempts(): number {
    return this.#repeatedAttempts
  }

  /** How full the sums of hours are. */
  get sums(): SumsFill {
    return this.#rollups.fill
  }

  /** When the oldest ended round that is kept ended, ms since the epoch. */
  get oldest(): number | null {
    return this.#segments.oldest
  }

  /** False if a file was removed, or another one is in its place: what is written is lost. */
  get isInPlace(): boolean {
    return inodeOf(mainFile(this.directory)) === this.#inode && this.#segments.areInPlace
  }

  /** Bytes on disk. */
  get bytes(): number {
    let bytes = 0
    for (const name of readdirSync(this.#options.directory))
      bytes += statSync(join(this.#options.directory, name), { throwIfNoEntry: false })?.size ?? 0
    return bytes
  }

  /** Adds a fact to the batch under way. Facts come in the order of the history. */
  take(text: string, storedAs: number, nanoseconds: string): void {
    const seq = this.#withoutBase(storedAs)
    this.#next = { seq, nanoseconds }
    const fact = readDeliveryFact(text)
    if (fact === undefined) return
    if (fact.eventSeq !== undefined && fact.eventAt !== undefined)
      this.#times.see(fact.eventSeq, fact.eventAt)
    this.#rollups.note(fact, millisOf(nanoseconds))
    const { tenant } = fact
    const event = fact.event ?? `evt_${fact.eventSeq}`
    const isNew = fact.eventSeq === undefined || !this.#recent.mayBeKnown(fact.eventSeq)
    for (const change of changesOf(fact, seq)) {
      let working = this.#working.get(change.key)
      if (working === undefined) {
        working = isNew ? unknown() : this.#find(change, tenant, event)
        this.#working.set(change.key, working)
      }
      const before = working.now
      working.now = change.apply(before)
      if (isRepeatedAttempt(fact, before, working.now)) this.#repeatedAttempts++
    }
    const unwanted = unwantedIn(fact, seq)
    if (unwanted !== undefined) this.#unwanted.push(unwanted)
    const again = sentAgainIn(fact)
    if (again !== undefined) this.#markSentAgain(again, tenant)
  }

  /** Notes that there are no facts up to a sequence. */
  skipTo(last: number): void {
    const seq = this.#withoutBase(last)
    if (seq > this.#next.seq) this.#next = { seq, nanoseconds: "" }
  }

  /** Forgets the rounds that have not ended: facts that ended them may be lost. */
  forgetWaiting(): void {
    this.#main.exec("DELETE FROM waiting")
    this.#waitingRows = 0
  }

  /** Stores the batch under way. @throws an error of SQLite: open the files anew. */
  commit(): void {
    if (this.#next.seq === this.#position.seq) return
    this.#main.exec("BEGIN IMMEDIATE")
    this.#segments.append({ ...this.#storeWorking(), unwanted: this.#unwanted }, this.#next.seq)
    this.#rollups.store()
    this.#storePosition()
    this.#main.exec("COMMIT")
    this.#position = this.#next
    this.#working.clear()
    this.#unwanted.length = 0
    this.#segments.applyChanges()
  }

  /** Removes what is too old or too much. Returns how many rounds it removed. */
  retain(now: number): number {
    const { keepMs } = this.#options
    this.#times.retain(now - keepMs)
    this.#rollups.retain(now - keepMs)
    let removed = 0
    while (true) {
      const rows = this.#segments.dropOldest(now, this.bytes)
      if (rows === undefined) return removed
      removed += rows
    }
  }

  /**
   * Forgets all that facts from a sequence on told, so that they are read again. What older facts
   * told is kept, but for the sums of the hour in which the first was stored.
   *
   * @param firstAt when the first of them was stored, ms since the epoch; Infinity if there is none.
   */
  rewind(from: number, firstAt: number): void {
    const first = this.#withoutBase(from)
    this.#working.clear()
    this.#rollups.clear()
    this.#unwanted.length = 0
    this.#repeatedAttempts = 0
    this.#next = { seq: first - 1, nanoseconds: "" }
    this.#main.exec("BEGIN IMMEDIATE")
    this.#main.prepare("DELETE FROM waiting WHERE position >= ?").run(positionOf(first, 0))
    this.#times.forgetFrom(first)
    this.#rollups.forgetFrom(firstAt)
    this.#storePosition()
    this.#main.exec("COMMIT")
    this.#position = this.#next
    this.#waitingRows = countOf(this.#main, "waiting")
    this.#segments.trim(this.#position.seq)
  }

  /** How many ended rounds are older than a fact. */
  rowsBefore(first: number): number {
    return this.#segments.rowsBefore(this.#withoutBase(first))
  }

  /** Gives back the memory of pages until they are needed again. */
  releaseMemory(): void {
    this.#main.exec("PRAGMA shrink_memory")
    this.#segments.releaseMemory()
  }

  close(): void {
    this.#segments.close()
    this.#main.close()
  }

  /** Returns a sequence in the history as the files have it. The first one decides on the base. */
  #withoutBase(seq: number): number {
    if (this.#position.seq === 0 && this.#next.seq === 0) this.#base = baseOf(seq)
    return seq - this.#base
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
    const waiting = this.#waitingRows === 0 ? [] : this.#waiting.all(event, tenant, of)
    return [
      ...waiting.map((stored) => ({ stored, segment: undefined, now: stored })),
      ...this.#segments
        .find(of, event, tenant)
        .map(({ segment, stored }) => ({ stored, segment, now: stored }))
    ]
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

  /** Stores what has not ended and notes changes of older rows. Returns what is to be added. */
  #storeWorking(): Omit<NewRows, "unwanted"> {
    const ended: Array<TrackedRound> = []
    const attempts: Array<MadeAttempt> = []
    for (const { now, segment, stored } of this.#working.values()) {
      if (now === undefined || now === stored) continue
      for (const attempt of attemptsSince(stored, now)) attempts.push(attempt)
      if (segment !== undefined && stored !== undefined) {
        const isMoved = now.position !== stored.position
        this.#segments.noteChange(segment, stored.position, isMoved ? undefined : now)
        if (isMoved) ended.push(now)
      } else if (isOver(now)) {
        if (stored !== undefined) {
          this.#removeWaiting.run(stored.position)
          this.#waitingRows--
        }
        ended.push(now)
      } else {
        this.#insertWaiting.run(...valuesOf(now, plainNames))
        if (stored === undefined) this.#waitingRows++
      }
    }
    return { ended: ended.sort((a, b) => a.position - b.position), attempts }
  }

  #storePosition(): void {
    const { nanoseconds, seq } = this.#next
    this.#main
      .prepare(
        "UPDATE state SET seq = ?, base = ?, nanoseconds = ?, newest_event = ?, repeated_attempts = ?"
      )
      .run(seq, this.#base, nanoseconds, this.#recent.newest, this.#repeatedAttempts)
    this.#times.store(seq, nanoseconds === "" ? 0 : millisOf(nanoseconds))
  }
}

/** Whether a fact tells of a request that another fact has told of: the receiver got it twice. */
const isRepeatedAttempt = (
  fact: Fact,
  before: TrackedRound | undefined,
  after: TrackedRound | undefined
): boolean =>
  fact.attempt !== undefined &&
  (isSuccess(fact.kind) || fact.kind === "attempt-failed") &&
  (after?.round.repeats ?? 0) > (before?.round.repeats ?? 0)

const unknown = (): Working => ({ stored: undefined, segment: undefined, now: undefined })
