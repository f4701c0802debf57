import type { DatabaseSync } from "node:sqlite"
import type { RecordedAttempt } from "../history/fold/delivery.ts"
import { endpointIn, endpointName, type StoredRow, stateOf, trackedOf } from "./columns.ts"
import type { AttemptRow } from "./delivery-log.ts"
import type { RowPart } from "./keyset-search.ts"
import type { Names, WritableNames } from "./names-table.ts"
import { positionOf, seqOf, type TrackedRound } from "./tracked-round.ts"

const ofRound = ({ endpoint, event, eventAt, eventSeq, round, tenant, type }: TrackedRound) => ({
  ...{ tenant, endpoint, event, eventAt, eventSeq, type },
  round: round.round
})

/** An attempt, the sequence of its fact, and the round that it was made in. */
export interface MadeAttempt {
  readonly seq: number
  readonly attempt: RecordedAttempt
  readonly of: ReturnType<typeof ofRound>
}

/** Columns of the table, in order. What they are is as in a row of a delivery. */
const columns = [
  "position",
  "tenant",
  "endpoint",
  "event",
  "event_seq",
  "event_at",
  "round",
  "type",
  "number",
  "success",
  "probe",
  "status",
  "error",
  "message",
  "at",
  "ms",
  "next_at",
  "worker"
] as const

export const attemptColumns = columns.join(", ")

/**
 * The attempts of a file that are not told by the row of a delivery: a success that ended a round
 * stands there, at the same position.
 */
export const attemptTable = `
  CREATE TABLE IF NOT EXISTS attempt (
    position INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, endpoint INTEGER NOT NULL,
    event TEXT NOT NULL, event_seq INTEGER NOT NULL, event_at INTEGER NOT NULL,
    round TEXT NOT NULL, type INTEGER, number INTEGER NOT NULL, success INTEGER NOT NULL,
    probe INTEGER NOT NULL, status INTEGER, error INTEGER, message TEXT, at INTEGER NOT NULL,
    ms REAL, next_at INTEGER, worker INTEGER);
  CREATE INDEX IF NOT EXISTS attempt_endpoint ON attempt (endpoint, position);
  CREATE INDEX IF NOT EXISTS attempt_tenant ON attempt (tenant, position);
  CREATE INDEX IF NOT EXISTS attempt_event ON attempt (event);`

/**
 * Returns the index of the attempt that the row of a delivery tells, -1 for none: the success that its
 * columns are about, if the row stands at the fact of it.
 */
const toldIn = (tracked: TrackedRound): number => {
  const { position, round, seqs } = tracked
  if (stateOf(tracked) !== "delivered") return -1
  const index = round.attempts.findLastIndex(({ isSuccess }) => isSuccess)
  return seqs[index] === seqOf(position) ? index : -1
}

/** Returns the attempts that become rows of their own when a round is stored anew. */
export const attemptsSince = (
  stored: TrackedRound | undefined,
  now: TrackedRound
): ReadonlyArray<MadeAttempt> => {
  const told = toldIn(now)
  const { round, seqs } = now
  const from = stored?.seqs.length ?? 0
  // The usual round: one attempt, which its row tells.
  if (from === 0 && told === 0 && seqs.length === 1) return []
  const before = stored === undefined ? -1 : toldIn(stored)
  const of = ofRound(now)
  return round.attempts.flatMap((attempt, index) => {
    const seq = seqs[index]
    const isOwn = index !== told && (index >= from || index === before)
    return isOwn && seq !== undefined ? [{ seq, attempt, of }] : []
  })
}

/** Returns how an attempt is stored. */
export const prepareAttempt = (db: DatabaseSync, names: WritableNames) => {
  const insert = db.prepare(
    `INSERT OR REPLACE INTO attempt (${attemptColumns}) VALUES (${columns.map(() => "?").join(", ")})`
  )
  const named = (text: string | null | undefined) => (text == null ? null : names.storedOf(text))
  return ({ attempt, of, seq }: MadeAttempt): void => {
    insert.run(
      positionOf(seq, 0),
      names.storedOf(of.tenant),
      names.storedOf(endpointName(of.tenant, of.endpoint)),
      of.event,
      of.eventSeq,
      of.eventAt,
      of.round,
      named(of.type),
      attempt.number,
      attempt.isSuccess ? 1 : 0,
      attempt.isProbe === true ? 1 : 0,
      attempt.status ?? null,
      named(attempt.error?.class),
      attempt.error?.message ?? null,
      attempt.at,
      attempt.durationMs ?? null,
      attempt.nextAttemptAt ?? null,
      named(attempt.worker)
    )
  }
}

const rowOf = ({ attempt, of, seq }: MadeAttempt, base: number): AttemptRow => {
  const { at, durationMs, error, isProbe, isSuccess, nextAttemptAt, number, status, worker } =
    attempt
  return {
    delivery: `${of.event}.${of.endpoint}`,
    ...of,
    number,
    at,
    outcome: isSuccess ? "success" : "failure",
    isProbe: isProbe === true,
    status: status ?? null,
    error: error ?? null,
    durationMs: durationMs ?? null,
    nextAttemptAt: nextAttemptAt ?? null,
    worker: worker ?? null,
    seq: base + seq
  }
}

type Row = RowPart["row"]

const numberIn = (value: unknown): number | null => (typeof value === "number" ? value : null)

const ownRow = (row: Row, names: Names, base: number): AttemptRow => {
  const named = (value: unknown) => (value === null ? null : names.textOf(Number(value)))
  const error = named(row.error)
  const event = String(row.event)
  const endpoint = endpointIn(names.textOf(Number(row.endpoint)))
  return {
    delivery: `${event}.${endpoint}`,
    round: String(row.round),
    tenant: names.textOf(Number(row.tenant)),
    ...{ endpoint, event },
    eventSeq: Number(row.event_seq),
    eventAt: Number(row.event_at),
    type: named(row.type),
    number: Number(row.number),
    at: Number(row.at),
    outcome: row.success === 1 ? "success" : "failure",
    isProbe: row.probe === 1,
    status: numberIn(row.status),
    error: error === null ? null : { class: error, message: String(row.message ?? "") },
    durationMs: numberIn(row.ms),
    nextAttemptAt: numberIn(row.next_at),
    worker: named(row.worker),
    seq: base + seqOf(Number(row.position))
  }
}

/**
 * Returns the attempt of a row: one of its own, or the success that ended a round.
 *
 * @param base what was taken off sequences.
 */
export const attemptRowsOf = (
  { row, source: { name, table } }: RowPart,
  base: number
): ReadonlyArray<AttemptRow> => {
  if (name === "attempt") return [ownRow(row, table.names, base)]
  const tracked = trackedOf(row as StoredRow, table.names)
  const index = toldIn(tracked)
  const [attempt, seq] = [tracked.round.attempts[index], tracked.seqs[index]]
  return attempt === undefined || seq === undefined
    ? []
    : [rowOf({ seq, attempt, of: ofRound(tracked) }, base)]
}
