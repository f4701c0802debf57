import type { SQLOutputValue } from "node:sqlite"
import type { DeliveryRound, RecordedAttempt } from "../history/fold/delivery.ts"
import { attemptsOf, endOf, isLate } from "../history/fold/round.ts"
import type { DeliveryRow, DeliveryState, LoggedRound } from "./delivery-log.ts"
import type { Names, WritableNames } from "./names-table.ts"
import type { TrackedRound } from "./tracked-round.ts"
import { isOver, seqOf } from "./tracked-round.ts"

/** The states by their number in a row. 1 is the usual one, which some indexes leave out. */
export const stateNumbers: ReadonlyArray<DeliveryState> = [
  "waiting",
  "delivered",
  "dead-lettered",
  "discarded",
  "skipped"
]
export const deliveredNumber = stateNumbers.indexOf("delivered")
/** The lowest status of an answer that is not usually a success. A policy may count it as one. */
export const firstUnusualStatus = 300
/** The rows that some indexes have: what was not delivered as usual. */
export const isUnusual = `(state <> ${deliveredNumber} OR status >= ${firstUnusualStatus})`

/**
 * The columns of a row, in order. `position` orders all rows; `bits` is the state of history/fold,
 * and `detail` the round as JSON where the columns do not say all of it.
 */
export const columns = [
  "position",
  "tenant",
  "endpoint",
  "event",
  "event_seq",
  "event_at",
  "round",
  "type",
  "channel",
  "state",
  "bits",
  "attempts",
  "status",
  "error",
  "reason",
  "began_at",
  "deadline",
  "at",
  "ms",
  "worker",
  "dead",
  "detail"
] as const
type Column = (typeof columns)[number]

/**
 * The rows of a file.
 *
 * @param name the table.
 * @param names what shared texts are stored as: numbers, or the texts themselves.
 */
export const tableOf = (name: string, names: "INTEGER" | "TEXT"): string => `
  CREATE TABLE IF NOT EXISTS ${name} (
    position INTEGER PRIMARY KEY, tenant ${names} NOT NULL, endpoint ${names} NOT NULL,
    event TEXT NOT NULL, event_seq INTEGER NOT NULL, event_at INTEGER NOT NULL,
    round TEXT NOT NULL, type ${names}, channel ${names}, state INTEGER NOT NULL, bits INTEGER NOT NULL,
    attempts INTEGER NOT NULL, status INTEGER, error ${names}, reason ${names},
    began_at INTEGER, deadline INTEGER, at INTEGER NOT NULL, ms REAL, worker ${names},
    dead INTEGER, detail TEXT
  );
  CREATE INDEX IF NOT EXISTS ${name}_endpoint ON ${name} (endpoint, position);
  CREATE INDEX IF NOT EXISTS ${name}_tenant ON ${name} (tenant, position);
  CREATE INDEX IF NOT EXISTS ${name}_event ON ${name} (event);
  CREATE INDEX IF NOT EXISTS ${name}_event_seq ON ${name} (event_seq, event_at);
  CREATE INDEX IF NOT EXISTS ${name}_tenant_event ON ${name} (tenant, event_seq, event_at);
  CREATE INDEX IF NOT EXISTS ${name}_unusual_tenant ON ${name} (tenant, position)
    WHERE ${isUnusual};
  CREATE INDEX IF NOT EXISTS ${name}_unusual_endpoint ON ${name} (endpoint, position)
    WHERE ${isUnusual};
  CREATE INDEX IF NOT EXISTS ${name}_unusual ON ${name} (position)
    WHERE ${isUnusual};`

export const insertInto = (name: string): string =>
  `INSERT OR REPLACE INTO ${name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`

export const stateOf = (tracked: TrackedRound): DeliveryState => {
  if (tracked.skipped !== null) return "skipped"
  const end = endOf(tracked.round.state)
  return end === "none" ? "waiting" : end
}

/** The name of an endpoint among those of all tenants. */
export const endpointName = (tenant: string, endpoint: string): string => `${tenant}/${endpoint}`

/** The endpoint in an {@link endpointName}. */
export const endpointIn = (name: string): string => name.slice(name.indexOf("/") + 1)

/** When the row stands in the log. */
const timeOf = ({ round }: TrackedRound): number =>
  round.end?.at ?? round.begun?.at ?? round.attempts[0]?.at ?? 0

/** True if the columns say all of a round: of at most one attempt, which was its success. */
const isPlain = (tracked: TrackedRound): boolean => {
  const { redeliveredAs, round, seqs, skipped } = tracked
  const { attempts, begun, discardedAt, end, repeats } = round
  if (begun?.by !== "routed" || repeats > 0 || discardedAt !== undefined) return false
  if (redeliveredAs !== null || skipped !== null || attempts.length > 1) return false
  const [attempt] = attempts
  if (attempt === undefined) return end === undefined
  return (
    end !== undefined &&
    end.at === attempt.at &&
    end.reason === undefined &&
    end.dead === undefined &&
    end.late === undefined &&
    end.probes === undefined &&
    attempt.number === attemptsOf(round.state) &&
    attempt.isSuccess &&
    attempt.isProbe === undefined &&
    attempt.error === undefined &&
    attempt.nextAttemptAt === undefined &&
    seqs[0] === seqOf(tracked.position)
  )
}

/** The attempt that decided: of a delivered round its success, whatever was recorded after it. */
const decisive = ({ attempts, state }: DeliveryRound): RecordedAttempt | undefined =>
  endOf(state) === "delivered" ? attempts.findLast(({ isSuccess }) => isSuccess) : attempts.at(-1)

const orNull = <A>(value: A | undefined): A | null => value ?? null

/** Returns the values of a row, in the order of {@link columns}. */
export const valuesOf = (
  tracked: TrackedRound,
  names: WritableNames
): Array<string | number | null> => {
  const { endpoint, event, eventAt, eventSeq, position, round, tenant, type } = tracked
  const last = decisive(round)
  const reason = tracked.skipped ?? round.end?.reason
  const named = (text: string | null | undefined) => (text == null ? null : names.storedOf(text))
  const { redeliveredAs, seqs, skipped } = tracked
  return [
    position,
    names.storedOf(tenant),
    names.storedOf(endpointName(tenant, endpoint)),
    event,
    eventSeq,
    eventAt,
    round.round,
    named(type),
    named(tracked.channel),
    stateNumbers.indexOf(stateOf(tracked)),
    round.state,
    attemptsOf(round.state),
    orNull(last?.status),
    named(last?.error?.class),
    named(reason),
    orNull(round.begun?.at),
    orNull(round.begun?.deadline),
    timeOf(tracked),
    orNull(last?.durationMs),
    named(last?.worker),
    orNull(round.end?.dead),
    isPlain(tracked) ? null : JSON.stringify({ round, seqs, skipped, redeliveredAs })
  ]
}

export type StoredRow = Readonly<Record<Column, SQLOutputValue>>

const number = (value: SQLOutputValue): number | undefined =>
  typeof value === "number" ? value : undefined

const plainRound = (row: StoredRow, names: Names): DeliveryRound => {
  const [at, beganAt, deadline, ms, status] = [
    Number(row.at),
    Number(row.began_at),
    number(row.deadline),
    number(row.ms),
    number(row.status)
  ]
  const attempt: RecordedAttempt = {
    number: Number(row.attempts),
    at,
    isSuccess: true,
    ...(status === undefined ? {} : { status }),
    ...(ms === undefined ? {} : { durationMs: ms }),
    ...(row.worker === null ? {} : { worker: names.textOf(row.worker) })
  }
  const isWaiting = Number(row.state) === 0
  return {
    round: String(row.round),
    state: Number(row.bits),
    begun: { by: "routed", at: beganAt, ...(deadline === undefined ? {} : { deadline }) },
    attempts: isWaiting ? [] : [attempt],
    ...(isWaiting ? {} : { end: { at } }),
    repeats: 0
  }
}

/** Returns the round of a row: what {@link valuesOf} was given. */
export const trackedOf = (row: StoredRow, names: Names): TrackedRound => {
  const position = Number(row.position)
  const detail: Pick<TrackedRound, "redeliveredAs" | "round" | "seqs" | "skipped"> =
    row.detail === null
      ? {
          round: plainRound(row, names),
          seqs: Number(row.state) === 0 ? [] : [seqOf(position)],
          skipped: null,
          redeliveredAs: null
        }
      : JSON.parse(String(row.detail))
  return {
    position,
    tenant: names.textOf(row.tenant),
    endpoint: endpointIn(names.textOf(row.endpoint)),
    event: String(row.event),
    eventSeq: Number(row.event_seq),
    eventAt: Number(row.event_at),
    type: row.type === null ? null : names.textOf(row.type),
    channel: row.channel === null ? null : names.textOf(row.channel),
    ...detail
  }
}

/** Returns a round as the log shows it. @param base what was taken off sequences. */
export const rowOf = (tracked: TrackedRound, base: number): DeliveryRow => {
  const { endpoint, event, eventAt, eventSeq, position, round, tenant, type } = tracked
  const last = decisive(round)
  return {
    delivery: `${event}.${endpoint}`,
    round: round.round,
    ...{ tenant, endpoint, event, eventSeq, eventAt, type },
    state: stateOf(tracked),
    late: isLate(round.state),
    attempts: attemptsOf(round.state),
    probes: round.attempts.filter(({ isProbe }) => isProbe === true).length,
    status: orNull(last?.status),
    error: orNull(last?.error?.class),
    reason: orNull(tracked.skipped ?? round.end?.reason),
    beganAt: orNull(round.begun?.at),
    at: timeOf(tracked),
    durationMs: orNull(last?.durationMs),
    nextAttemptAt: isOver(tracked) ? null : orNull(round.waits?.until),
    dead: orNull(round.end?.dead),
    redeliveredAs: tracked.redeliveredAs,
    seq: base + seqOf(position)
  }
}

/** Returns a round with its attempts. @param base what was taken off sequences. */
export const loggedRoundOf = (tracked: TrackedRound, base: number): LoggedRound => ({
  ...rowOf(tracked, base),
  begunBy: orNull(tracked.round.begun?.by),
  deadline: orNull(tracked.round.begun?.deadline),
  waitsBy: orNull(tracked.round.waits?.by),
  discardedAt: orNull(tracked.round.discardedAt),
  endProbes: orNull(tracked.round.end?.probes),
  repeats: tracked.round.repeats,
  bits: tracked.round.state,
  recorded: tracked.round.attempts.map((attempt, index) => ({
    number: attempt.number,
    seq: base + (tracked.seqs[index] ?? 0),
    at: attempt.at,
    isSuccess: attempt.isSuccess,
    isProbe: attempt.isProbe === true,
    status: orNull(attempt.status),
    error: orNull(attempt.error),
    durationMs: orNull(attempt.durationMs),
    nextAttemptAt: orNull(attempt.nextAttemptAt),
    worker: orNull(attempt.worker)
  }))
})
