import type { DatabaseSync, StatementSync } from "node:sqlite"
import type { Names } from "./names-table.ts"

/** Statements of a file that are kept. */
const maxStatements = 200

/** A file with rows, opened to read: its table of deliveries, its names and its statements. */
export class RowTable {
  /** Of its deliveries. */
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
