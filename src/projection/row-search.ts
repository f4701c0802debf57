import type { DatabaseSync, StatementSync } from "node:sqlite"
import { timers } from "../time/timers.ts"
import { columns, type StoredRow } from "./columns.ts"
import type { Conditions } from "./conditions.ts"
import type { Names } from "./names-table.ts"
import { positionOf } from "./tracked-round.ts"

/** A table with rows, its names and its statements. */
export class RowTable {
  readonly name: string
  readonly names: Names
  readonly #db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(db: DatabaseSync, name: string, names: Names) {
    this.#db = db
    this.name = name
    this.names = names
  }

  prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    if (this.#statements.size >= maxStatements) this.#statements.clear()
    const made = this.#db.prepare(sql)
    this.#statements.set(sql, made)
    return made
  }

  close(): void {
    this.#db.close()
  }
}
const maxStatements = 200

export interface FoundRow {
  readonly position: number
  readonly row: StoredRow
  readonly names: Names
}

/** Rows in order, and the position down to which there are no others. */
export interface Searched {
  readonly rows: Array<FoundRow>
  /** 0 if nothing is left. */
  floor: number
}

/** How wide the range of a step is, in facts: it doubles while steps are quick. */
const firstStep = 4_096
const leastStep = 512
const quickMs = 2
const slowMs = 6
const nextStep = (step: number, ms: number): number => {
  if (ms < quickMs) return step * 2
  return ms > slowMs ? Math.max(leastStep, step / 2) : step
}

/** Among more events that begin alike it is quicker to look at all rows. */
const fewEvents = 2_000

/**
 * A search through tables, newest rows first. One statement cannot be stopped, so it goes in steps of
 * a range of positions, and ends when the time is over.
 */
export class RowSearch {
  readonly #limit: number
  /** No row below is wanted. */
  readonly #lowest: number
  readonly #deadlineMs: number
  readonly #found: Searched
  #step = firstStep

  constructor(limit: number, lowest: number, deadlineMs: number) {
    this.#limit = limit
    this.#lowest = lowest
    this.#deadlineMs = deadlineMs
    this.#found = { rows: [], floor: 0 }
  }

  /** What was found so far. */
  get found(): Searched {
    return this.#found
  }

  /**
   * Searches a table from below a position down. Returns false if the search is over: it has enough
   * rows, or no time is left.
   */
  through(table: RowTable, conditions: Conditions, upper: number): boolean {
    const range = table
      .prepare(
        `SELECT (SELECT min(position) FROM ${table.name}) AS first, (SELECT max(position) FROM ${table.name}) AS last`
      )
      .get()
    if (range?.first == null) return true
    const lowest = Math.max(this.#lowest, Number(range.first))
    let below = Math.min(upper, Number(range.last) + 1)
    const source = sourceOf(table, conditions)
    const isOneStep = source.isNarrow
    while (below > lowest) {
      const from = isOneStep ? lowest : Math.max(lowest, below - positionOf(this.#step, 0))
      const began = timers.monotonicMs()
      if (this.#take(table, conditions, source.from, from, below)) return false
      below = from
      const now = timers.monotonicMs()
      // How long an index of events takes says nothing of a range of rows.
      if (!isOneStep) this.#step = nextStep(this.#step, now - began)
      // The next step may take as long.
      if (now + (now - began) > this.#deadlineMs) {
        this.#found.floor = below
        return false
      }
    }
    return true
  }

  /** Takes the rows of a range. Returns true if these are enough. */
  #take(
    table: RowTable,
    { sql, values }: Conditions,
    source: string,
    from: number,
    below: number
  ): boolean {
    const { rows } = this.#found
    const where = [...sql, "position >= ? AND position < ?"].join(" AND ")
    const found = table
      .prepare(
        `SELECT ${columns.join(", ")} FROM ${source} WHERE ${where} ORDER BY position DESC LIMIT ?`
      )
      .all(...values, from, below, this.#limit - rows.length) as unknown as Array<StoredRow>
    for (const row of found) rows.push({ position: Number(row.position), row, names: table.names })
    const last = rows.at(-1)
    if (rows.length < this.#limit || last === undefined) return false
    this.#found.floor = last.position
    return true
  }
}

/** How to read the table: by the index that suits, and whether it leads to few rows only. */
const sourceOf = (
  table: RowTable,
  { index, prefix }: Conditions
): { readonly from: string; readonly isNarrow: boolean } => {
  const { name } = table
  if (prefix !== undefined) {
    const count = table
      .prepare(
        `SELECT count(*) AS rows FROM (SELECT 1 FROM ${name} WHERE event >= ? AND event < ? LIMIT ${fewEvents})`
      )
      .get(...prefix)
    if (Number(count?.rows) < fewEvents)
      return { from: `${name} INDEXED BY ${name}_event`, isNarrow: true }
  }
  return index === undefined
    ? { from: `${name} NOT INDEXED`, isNarrow: false }
    : { from: `${name} INDEXED BY ${name}_${index}`, isNarrow: index === "event" }
}
