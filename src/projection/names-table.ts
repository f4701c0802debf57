import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite"

/** How a table stores texts that many of its rows share. */
export interface Names {
  /** Returns what a text is stored as; undefined if no row can have it. */
  readonly find: (text: string) => string | number | undefined
  readonly textOf: (stored: SQLOutputValue) => string
}

/** Names of a table that rows are written to. */
export interface WritableNames extends Names {
  /** Returns what a text is stored as, which it may be for the first time. */
  readonly storedOf: (text: string) => string | number
}

/** Texts are stored as they are: for rows that leave their table soon. */
export const plainNames: WritableNames = {
  find: (text) => text,
  storedOf: (text) => text,
  textOf: String
}

export const namesTable =
  "CREATE TABLE IF NOT EXISTS names (number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)"

/** Adds to a bounded memory of what is in a table. */
const remember = <K, V>(known: Map<K, V>, most: number, key: K, value: V): void => {
  if (known.size >= most) known.clear()
  known.set(key, value)
}

/**
 * Texts are stored as numbers, which are those of one file and go with it: what tenants invent, such
 * as types of events, is kept no longer than the rows that have it.
 */
export class NumberedNames implements Names {
  #most: number
  readonly #numbers = new Map<string, number>()
  readonly #texts = new Map<number, string>()
  readonly #selectNumber: StatementSync
  readonly #selectText: StatementSync
  readonly #selectBetween: StatementSync

  /** @param most how many are kept in memory at most, each way. */
  constructor(db: DatabaseSync, most: number) {
    this.#most = most
    this.#selectNumber = db.prepare("SELECT number FROM names WHERE text = ?")
    this.#selectText = db.prepare("SELECT text FROM names WHERE number = ?")
    this.#selectBetween = db.prepare(
      "SELECT number FROM names WHERE text >= ? AND text < ? LIMIT ?"
    )
  }

  find(text: string): number | undefined {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    const row = this.#selectNumber.get(text)
    if (row === undefined) return undefined
    return this.note(text, Number(row.number))
  }

  textOf(stored: SQLOutputValue): string {
    const number = Number(stored)
    const known = this.#texts.get(number)
    if (known !== undefined) return known
    const text = String(this.#selectText.get(number)?.text ?? "")
    remember(this.#texts, this.#most, number, text)
    return text
  }

  /** Returns the numbers of texts in a range, at most so many. */
  numbersBetween(from: string, to: string, most: number): ReadonlyArray<number> {
    return this.#selectBetween.all(from, to, most).map(({ number }) => Number(number))
  }

  /** Forgets what is in memory, and keeps less from now on. */
  keep(most: number): void {
    this.#most = most
    this.#numbers.clear()
    this.#texts.clear()
  }

  protected note(text: string, number: number): number {
    remember(this.#numbers, this.#most, text, number)
    return number
  }
}

/** {@link NumberedNames} of a file that rows are written to, within the caller's transaction. */
export class GrowingNames extends NumberedNames implements WritableNames {
  readonly #insert: StatementSync

  constructor(db: DatabaseSync, most: number) {
    super(db, most)
    this.#insert = db.prepare("INSERT INTO names (text) VALUES (?)")
  }

  storedOf(text: string): number {
    return this.find(text) ?? this.note(text, Number(this.#insert.run(text).lastInsertRowid))
  }
}
