import { type Entry, type EntryState, type NewEntry, sha256 } from "../entry.ts"
import type { SqlRow, SqlValue } from "./sql.ts"

/** What a new entry has in the columns that are the same for each way to store it. */
export const newColumns = [
  ...["source", "event_key", "type", "subject", "version", "happened_at"],
  ...["headers", "content_type", "body", "body_hash", "expires_at", "state", "error"]
] as const

/** Returns the expressions of the columns, with the database's clock. */
export const newExpressions = (nowMs: string): ReadonlyArray<string> =>
  newColumns.map((column) => (column === "expires_at" ? `${nowMs} + ?` : "?"))

export const newValues = (
  entry: NewEntry,
  state: EntryState,
  error: string | null = null
): ReadonlyArray<SqlValue> => [
  ...[entry.source, entry.key, entry.type ?? null, entry.subject ?? null, entry.version ?? null],
  ...[entry.at ?? null, JSON.stringify(entry.headers), entry.contentType],
  ...[state === "done" || state === "stale" ? null : entry.body, sha256(entry.body)],
  ...[entry.keepMs, state, error]
]

/** The columns of an entry without its body. */
export const entryColumns = [
  ...["id", "source", "event_key", "type", "subject", "version", "state", "attempts", "next_at"],
  ...["headers", "content_type", "receipts", "conflicts", "happened_at", "received_at"],
  ...["started_at", "finished_at", "expires_at", "error"]
] as const

const textOf = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : String(value)

const numberOf = (value: unknown): number | undefined =>
  value === null || value === undefined ? undefined : Number(value)

export const entryOf = (row: SqlRow): Entry => ({
  id: String(row.id),
  source: String(row.source),
  key: String(row.event_key),
  type: textOf(row.type),
  subject: textOf(row.subject),
  version: numberOf(row.version),
  at: numberOf(row.happened_at),
  state: String(row.state) as EntryState,
  attempts: Number(row.attempts),
  nextAt: Number(row.next_at),
  headers: JSON.parse(String(row.headers)),
  contentType: String(row.content_type),
  receipts: Number(row.receipts),
  conflicts: Number(row.conflicts),
  receivedAt: Number(row.received_at),
  startedAt: numberOf(row.started_at),
  finishedAt: numberOf(row.finished_at),
  keepMs: Number(row.expires_at) - Number(row.received_at),
  error: textOf(row.error),
  body: row.body instanceof Uint8Array ? row.body : undefined
})
