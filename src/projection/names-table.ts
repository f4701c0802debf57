import type { DatabaseSync } from "node:sqlite"
import type { Names } from "./columns.ts"

export const namesTable =
  "CREATE TABLE IF NOT EXISTS names (number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)"

/** The numbers of shared texts, for the writer: it keeps all, and stores new ones on request. */
export class WritableNames implements Names {
  readonly #numbers = new Map<string, number>()
  readonly #texts: Array<string> = [""]
  #stored: number

  constructor(db: DatabaseSync) {
    for (const row of db.prepare("SELECT number, text FROM names ORDER BY number").iterate()) {
      this.#numbers.set(String(row.text), Number(row.number))
      this.#texts[Number(row.number)] = String(row.text)
    }
    this.#stored = this.#texts.length
  }

  numberOf(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    const number = this.#texts.push(text) - 1
    this.#numbers.set(text, number)
    return number
  }

  textOf(number: number): string {
    return this.#texts[number] ?? ""
  }

  /** Stores the new names, within the caller's transaction. */
  store(db: DatabaseSync): void {
    if (this.#stored === this.#texts.length) return
    const insert = db.prepare("INSERT INTO names VALUES (?, ?)")
    for (; this.#stored < this.#texts.length; this.#stored++)
      insert.run(this.#stored, this.#texts[this.#stored] ?? "")
  }
}
