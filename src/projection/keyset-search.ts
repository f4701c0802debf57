import { timers } from "../time/timers.ts"
import type { RowTable } from "./row-table.ts"

/** Rows to look at: of one table, in the order of a whole number that each has. */
export interface Source {
  readonly table: RowTable
  /** What follows FROM: the table, and the index to read it by. */
  readonly from: string
  /** The name of the table. */
  readonly name: string
  /** The column with the number. */
  readonly key: string
  /** What is selected, the number among it. */
  readonly select: string
  /** Joined by AND. */
  readonly where: ReadonlyArray<string>
  readonly values: ReadonlyArray<string | number>
  /** A column: rows in which it and the key are equal are one. */
  readonly groupBy?: string
  /** True if few rows fit, whatever the range is: all of it is one step. */
  readonly isNarrow: boolean
}

/** `older`: descending, from the upper end of the range; `newer`: ascending, from the lower one. */
export type Direction = "older" | "newer"

/** A range of keys. */
export interface KeyRange {
  readonly from: number
  readonly below: number
}

/** What one table has of a row. */
export interface RowPart {
  readonly row: Readonly<Record<string, unknown>>
  readonly source: Source
}

/** A row, and what each table has of it. */
export interface FoundRow {
  readonly key: number
  readonly parts: ReadonlyArray<RowPart>
}

/** What was found. */
interface Found {
  /** In the order of the direction, at most as many as were wanted. */
  readonly rows: ReadonlyArray<FoundRow>
  /** True if there are more rows in what was searched. */
  readonly isFull: boolean
  /** What was searched of the range, from the end at which it began. */
  readonly searched: KeyRange
}

/** How many facts a step leads through at first, and at least. */
const firstStep = 4_096
const leastStep = 512
const quickMs = 2
const slowMs = 6
const nextStep = (step: number, ms: number): number => {
  if (ms < quickMs) return step * 2
  return ms > slowMs ? Math.max(leastStep, step / 2) : step
}

/**
 * Searches several tables for the first rows of a range. One statement cannot be stopped, so each
 * table is read in steps of a range of keys, until there are enough rows or no time is left. What was
 * found in one table, or not searched there, narrows the range for the next. Each is read for one step
 * at least, so that a search comes further whatever time it has.
 */
export class KeysetSearch {
  readonly #direction: Direction
  /** One more than wanted, to know whether there are more. */
  readonly #limit: number
  readonly #keysPerFact: number
  #from: number
  #below: number
  #rows: ReadonlyArray<FoundRow> = []

  /**
   * @param range of all tables.
   * @param keysPerFact how many keys a fact takes.
   */
  constructor(direction: Direction, range: KeyRange, limit: number, keysPerFact: number) {
    this.#direction = direction
    this.#from = range.from
    this.#below = range.below
    this.#limit = limit + 1
    this.#keysPerFact = keysPerFact
  }

  get found(): Found {
    const isFull = this.#rows.length >= this.#limit
    return {
      rows: isFull ? this.#rows.slice(0, -1) : this.#rows,
      isFull,
      searched: { from: this.#from, below: this.#below }
    }
  }

  /**
   * Searches a table, and keeps the first rows of all that were found.
   *
   * @param deadlineMs when it is to end, of the monotonic clock.
   */
  through(source: Source, deadlineMs: number): void {
    const isOlder = this.#direction === "older"
    const { isNarrow } = source
    const range = this.#rangeIn(source)
    const rows: Array<FoundRow> = []
    let { below, from } = range
    let step = firstStep
    while (below > from) {
      const width = isNarrow ? below - from : Math.min(step * this.#keysPerFact, below - from)
      const part = isOlder ? { from: below - width, below } : { from, below: from + width }
      const began = timers.monotonicMs()
      rows.push(...this.#take(source, part, this.#limit - rows.length))
      if (isOlder) below = part.from
      else from = part.below
      if (rows.length >= this.#limit) break
      const now = timers.monotonicMs()
      step = nextStep(step, now - began)
      // The next step may take as long.
      if (now + (now - began) <= deadlineMs || below <= from) continue
      if (isOlder) this.#from = below
      else this.#below = from
      break
    }
    this.#keep(rows)
  }

  /** The part of the range in which a table has rows. */
  #rangeIn({ isNarrow, key, name, table }: Source): KeyRange {
    const range = { from: this.#from, below: this.#below }
    if (isNarrow) return range
    const ends = table
      .prepare(
        `SELECT (SELECT min(${key}) FROM ${name}) AS first, (SELECT max(${key}) FROM ${name}) AS last`
      )
      .get()
    if (ends?.first == null) return { from: 0, below: 0 }
    return {
      from: Math.max(range.from, Number(ends.first)),
      below: Math.min(range.below, Number(ends.last) + 1)
    }
  }

  #take(source: Source, { below, from }: KeyRange, most: number): ReadonlyArray<FoundRow> {
    const { groupBy, key, select, table, values, where } = source
    const all = [...where, `${key} >= ? AND ${key} < ?`].join(" AND ")
    const order = this.#direction === "older" ? "DESC" : "ASC"
    const by = [key, ...(groupBy === undefined ? [] : [groupBy])]
    const group = groupBy === undefined ? "" : ` GROUP BY ${by.join(", ")}`
    const sort = by.map((column) => `${column} ${order}`).join(", ")
    return table
      .prepare(`SELECT ${select} FROM ${source.from} WHERE ${all}${group} ORDER BY ${sort} LIMIT ?`)
      .all(...values, from, below, most)
      .map((row) => ({ key: Number(row[key]), parts: [{ row, source }] }))
  }

  /** Merges rows with those of other tables. Beyond the last one that is wanted nothing is searched. */
  #keep(more: ReadonlyArray<FoundRow>): void {
    const isOlder = this.#direction === "older"
    const sign = isOlder ? -1 : 1
    const all = [...this.#rows, ...more]
      .filter(({ key }) => key >= this.#from && key < this.#below)
      .sort((a, b) => sign * (a.key - b.key || groupOf(a) - groupOf(b)))
    const rows: Array<FoundRow> = []
    for (const one of all) {
      const last = rows.at(-1)
      if (last !== undefined && isSame(last, one))
        rows[rows.length - 1] = { key: last.key, parts: [...last.parts, ...one.parts] }
      else rows.push(one)
    }
    this.#rows = rows.slice(0, this.#limit)
    const last = this.#rows.at(-1)
    if (this.#rows.length < this.#limit || last === undefined) return
    if (isOlder) this.#from = Math.max(this.#from, last.key)
    else this.#below = Math.min(this.#below, last.key + 1)
  }
}

const groupOf = ({ parts: [part] }: FoundRow): number =>
  part?.source.groupBy === undefined ? 0 : Number(part.row[part.source.groupBy])

const isSame = (one: FoundRow, other: FoundRow): boolean =>
  one.parts[0]?.source.groupBy !== undefined &&
  one.key === other.key &&
  groupOf(one) === groupOf(other)
