import type { DatabaseSync, StatementSync } from "node:sqlite"
import type { Fact } from "../domain/fact.ts"
import { nobody } from "../domain/token.ts"
import { partsByEndpoint } from "../history/fold/groups.ts"
import { Spread, Summary } from "../history/fold/summary.ts"
import type { Totals } from "../history/fold/totals.ts"
import { beginningOf, noTotals } from "../history/fold/totals.ts"
import { DurationHistogram } from "../policy/durations.ts"
import type { SumsFill } from "./delivery-log.ts"

/** Writes whole numbers of any size, small ones in one byte: seven bits a byte, the lowest first. */
class NumberWriter {
  readonly #bytes: Array<number> = []

  write(number: number): void {
    let rest = number
    while (rest >= 0x80) {
      this.#bytes.push((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes.push(rest)
  }

  /** Writes how many there are, and each. */
  writeAll(numbers: ReadonlyArray<number>): void {
    this.write(numbers.length)
    for (const number of numbers) this.write(number)
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }
}

class NumberReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  read(): number {
    let number = 0
    for (let unit = 1; ; unit *= 0x80) {
      const byte = this.#bytes[this.#at++] ?? 0
      number += (byte & 0x7f) * unit
      if (byte < 0x80) return number
    }
  }

  readAll(): Array<number> {
    return Array.from({ length: this.read() }, () => this.read())
  }
}

const writeHistogram = (writer: NumberWriter, histogram: DurationHistogram): void => {
  const { buckets } = histogram
  writer.write(buckets.length)
  let before = 0
  for (const [bucket, times] of buckets) {
    writer.write(bucket - before)
    writer.write(times)
    before = bucket
  }
}

const readHistogram = (reader: NumberReader): DurationHistogram => {
  const histogram = new DurationHistogram()
  let bucket = 0
  for (let left = reader.read(); left > 0; left--) {
    bucket += reader.read()
    histogram.count(bucket, reader.read())
  }
  return histogram
}

/** Returns what of a summary is stored as bytes: all but its totals, which have columns. */
export const bytesOf = ({ answers, spread }: Summary): Uint8Array => {
  const writer = new NumberWriter()
  const { attempts, latency, toSuccess } = spread.parts
  writer.writeAll(answers)
  writer.writeAll(attempts)
  writeHistogram(writer, latency)
  writeHistogram(writer, toSuccess)
  return writer.bytes
}

/** Returns the summary of stored bytes: what {@link bytesOf} was given. */
export const summaryOf = (totals: Totals, bytes: Uint8Array): Summary => {
  const reader = new NumberReader(bytes)
  const answers = reader.readAll()
  const attempts = reader.readAll()
  const latency = readHistogram(reader)
  const toSuccess = readHistogram(reader)
  return new Summary(totals, new Spread({ attempts, latency, toSuccess }), answers)
}

/** What an hour is summed up by: all of a tenant, each of its endpoints, and each type of event. */
export const rollupKinds = { tenant: 0, endpoint: 1, type: 2 } as const
export type RollupKind = keyof typeof rollupKinds

/** The totals of a row, each in a column. */
const totalNames = Object.keys(noTotals) as ReadonlyArray<keyof Totals>
const columnOf = (name: keyof Totals): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
export const totalColumns = totalNames.map(columnOf)

/**
 * Endpoints and types of a tenant that an hour is summed up by at most. What is beyond is summed up
 * together: a tenant can invent any number of types, and of endpoints that it removes again.
 */
const maxNames = { endpoint: 10_000, type: 500 }
/** The name of what is beyond. No endpoint or type has it. */
export const otherNames = ""

/** About what a row takes, bytes. */
const rowBytes = 300
/** Hours are summed up in this part of what the log may take; the oldest hours go first. */
const partOfBytes = 8

export const rollupTable = `
  CREATE TABLE IF NOT EXISTS rollup (
    hour INTEGER NOT NULL, kind INTEGER NOT NULL, tenant TEXT NOT NULL, name TEXT NOT NULL,
    ${totalColumns.map((column) => `${column} INTEGER NOT NULL`).join(", ")},
    spread BLOB NOT NULL, PRIMARY KEY (hour, kind, tenant, name)) WITHOUT ROWID;`

export type RollupRow = Readonly<Record<string, unknown>>

/** Returns the totals of a row, or of sums of rows. */
export const totalsIn = (row: RollupRow): Totals => {
  const pairs = totalNames.map((name, index) => [name, Number(row[totalColumns[index] ?? ""])])
  return Object.fromEntries(pairs) as unknown as Totals
}

export const summaryIn = (row: RollupRow): Summary =>
  summaryOf(totalsIn(row), row.spread as Uint8Array)

/** A row to be. */
interface Cell {
  readonly hour: number
  readonly kind: RollupKind
  readonly tenant: string
  readonly name: string
  readonly summary: Summary
}

/**
 * What happened in each hour, by tenant, endpoint and type: a fact counts for the hour in which the
 * broker stored it. It is stored in the transactions of main.db that store how far the history was
 * read, so that each fact counts once, whatever crashes.
 */
export class Rollups {
  readonly #main: DatabaseSync
  readonly #most: number
  /** What the batch under way adds. */
  readonly #cells = new Map<string, Cell>()
  /** How many names a tenant has in an hour, of those that were added to lately. */
  readonly #names = new Map<string, number>()
  readonly #select: StatementSync
  readonly #replace: StatementSync
  readonly #countNames: StatementSync
  #rows: number
  #together = 0

  /** @param maxBytes that the whole log may take. */
  constructor(main: DatabaseSync, maxBytes: number) {
    this.#main = main
    this.#most = Math.ceil(maxBytes / partOfBytes / rowBytes)
    const key = "hour = ? AND kind = ? AND tenant = ?"
    this.#select = main.prepare(`SELECT * FROM rollup WHERE ${key} AND name = ?`)
    const values = Array.from({ length: 5 + totalColumns.length }, () => "?").join(", ")
    this.#replace = main.prepare(`INSERT OR REPLACE INTO rollup VALUES (${values})`)
    this.#countNames = main.prepare(`SELECT count(*) AS names FROM rollup WHERE ${key}`)
    this.#rows = Number(main.prepare("SELECT count(*) AS rows FROM rollup").get()?.rows)
  }

  /** How full they are. */
  get fill(): SumsFill {
    return { rows: this.#rows, maxRows: this.#most, together: this.#together }
  }

  /** Adds a fact to the batch under way. @param storedAt ms since the epoch. */
  note(fact: Fact, storedAt: number): void {
    const { tenant, type = nobody } = fact
    const hour = beginningOf(storedAt, "hour")
    this.#cell(hour, "tenant", tenant, "").note(fact)
    this.#cell(hour, "type", tenant, type).note(fact)
    for (const [endpoint, part] of partsByEndpoint(fact))
      this.#cell(hour, "endpoint", tenant, endpoint).note(part)
  }

  /** Forgets the batch under way. */
  clear(): void {
    this.#cells.clear()
  }

  /** Stores the batch under way, within the caller's transaction. */
  store(): void {
    for (const cell of this.#cells.values()) this.#store(cell)
    this.#cells.clear()
  }

  /** Forgets hours from a time on: the facts that were stored then are read again. */
  forgetFrom(since: number): void {
    if (!Number.isFinite(since)) return
    this.#remove("hour >= ?", beginningOf(since, "hour"))
  }

  /** Removes hours that are over before a time, and the oldest ones where there are too many rows. */
  retain(before: number): void {
    this.#remove("hour < ?", beginningOf(before, "hour"))
    const oldest = this.#main.prepare("SELECT min(hour) AS first, max(hour) AS last FROM rollup")
    while (this.#rows > this.#most) {
      const { first, last } = oldest.get() ?? {}
      if (first == null || first === last) return
      this.#remove("hour <= ?", Number(first))
    }
  }

  #remove(condition: string, hour: number): void {
    const { changes } = this.#main.prepare(`DELETE FROM rollup WHERE ${condition}`).run(hour)
    if (changes === 0) return
    this.#rows -= Number(changes)
    this.#names.clear()
  }

  #cell(hour: number, kind: RollupKind, tenant: string, name: string): Summary {
    const key = `${hour} ${kind} ${tenant} ${name}`
    const known = this.#cells.get(key)
    if (known !== undefined) return known.summary
    const summary = new Summary()
    this.#cells.set(key, { hour, kind, tenant, name, summary })
    return summary
  }

  #store(cell: Cell): void {
    const { hour, kind, summary, tenant } = cell
    const find = (name: string) => this.#select.get(hour, rollupKinds[kind], tenant, name)
    const own = find(cell.name)
    const name = own !== undefined || this.#mayAdd(cell) ? cell.name : otherNames
    if (name !== cell.name) this.#together++
    const stored = name === cell.name ? own : find(name)
    if (stored === undefined) this.#rows++
    else summary.add(summaryIn(stored))
    const totals = totalNames.map((total) => summary.totals[total])
    const key = [hour, rollupKinds[kind], tenant, name] as const
    this.#replace.run(...key, ...totals, bytesOf(summary))
  }

  /** Whether a tenant may have one more name in an hour; if so, it has. */
  #mayAdd({ hour, kind, tenant }: Cell): boolean {
    if (kind === "tenant") return true
    const key = `${hour} ${kind} ${tenant}`
    const names =
      this.#names.get(key) ?? Number(this.#countNames.get(hour, rollupKinds[kind], tenant)?.names)
    if (this.#names.size >= maxKnownNames) this.#names.clear()
    const hasSpace = names < maxNames[kind] && this.#rows < 2 * this.#most
    this.#names.set(key, hasSpace ? names + 1 : names)
    return hasSpace
  }
}
/** Counts of names in memory. */
const maxKnownNames = 10_000
