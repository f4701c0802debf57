import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import {
  eraseValue,
  isConflict,
  readEntry,
  readValues,
  type StoredValue,
  writeValue
} from "../broker/values.ts"
import { Fact } from "../domain/fact.ts"
import { Reconciliation } from "../domain/reconciliation.ts"
import { type SourceName, sourceKey } from "../domain/source.ts"
import { Timestamp } from "../domain/timestamp.ts"
import { Token } from "../domain/token.ts"

/** What the last reconciliation of a source has found. */
export const ReconcileReport = Schema.Struct({
  v: Schema.Literal(1),
  tenant: Token,
  source: Token,
  provider: Schema.String,
  startedAt: Timestamp,
  endedAt: Timestamp,
  found: Reconciliation,
  /** Why it was broken off, one sentence; absent if it was not. */
  problem: Schema.optionalKey(Schema.String),
  /** More missing events than this are told of. */
  alertAbove: Schema.Int,
  /** Up to when reconciliations by schedule have covered all without a gap. */
  coveredUntil: Schema.optionalKey(Timestamp),
  /** Its facts, until they are in the history: none of them is at `after`, or before it. */
  unrecorded: Schema.optionalKey(Schema.Struct({ facts: Schema.Array(Fact), after: Schema.Int }))
})
export type ReconcileReport = typeof ReconcileReport.Type

/** How long a report tells of what is wrong now, ms. */
const tellsForMs = 24 * 60 * 60_000

const prefix = "reconcile."
const keyOf = (name: SourceName): string => `${prefix}${sourceKey(name)}`
const json = Schema.fromJsonString(ReconcileReport)
const decode = Schema.decodeUnknownOption(json)
const encode = Schema.encodeSync(json)

/**
 * Returns what the last reconciliations have found, by source.
 *
 * @param values of the bucket of workers.
 */
export const reconcileReportsIn = (
  values: ReadonlyArray<StoredValue>
): ReadonlyArray<ReconcileReport> =>
  values
    .filter(({ key }) => key.startsWith(prefix))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .flatMap(({ text }) => Option.toArray(decode(text)))

/** Reads what the last reconciliations have found, by source. */
export const readReconcileReports = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.workers, `${prefix}>`))
  return reconcileReportsIn(values)
})

/** Reads the report of one source; undefined if there is none. */
export const readReconcileReport = Effect.fnUntraced(function* (name: SourceName) {
  const { names } = yield* Broker
  const { text } = yield* readEntry(names.buckets.workers, keyOf(name))
  return Option.getOrUndefined(decode(text))
})

/** Writes the report of a reconciliation that has ended, over the one before. */
export const writeReconcileReport = Effect.fnUntraced(function* (report: ReconcileReport) {
  const { names } = yield* Broker
  const key = keyOf({ tenant: report.tenant, id: report.source })
  while (true) {
    const { revision, text } = yield* readEntry(names.buckets.workers, key)
    const before = Option.getOrUndefined(decode(text))
    const coveredUntil = report.coveredUntil ?? before?.coveredUntil
    const value = { ...report, ...(coveredUntil === undefined ? {} : { coveredUntil }) }
    const written = yield* writeValue(names.buckets.workers, key, encode(value), {
      expected: revision
    }).pipe(Effect.catchIf(isConflict, () => Effect.undefined))
    if (written !== undefined) return
  }
})

/** Notes that the facts of a report are in the history, unless there is another report by now. */
export const noteRecorded = Effect.fnUntraced(function* ({
  source: id,
  startedAt,
  tenant
}: ReconcileReport) {
  const { names } = yield* Broker
  const key = keyOf({ tenant, id })
  const { revision, text } = yield* readEntry(names.buckets.workers, key)
  const there = Option.getOrUndefined(decode(text))
  if (there === undefined || there.startedAt !== startedAt) return
  const { unrecorded: _, ...recorded } = there
  yield* writeValue(names.buckets.workers, key, encode(recorded), { expected: revision }).pipe(
    Effect.catchIf(isConflict, () => Effect.void)
  )
})

/** Forgets what was found of a source that is no more. */
export const forgetReconcileReport = Effect.fnUntraced(function* (name: SourceName) {
  const { names } = yield* Broker
  const { text } = yield* readEntry(names.buckets.workers, keyOf(name))
  if (text !== undefined) yield* eraseValue(names.buckets.workers, keyOf(name))
})

/** Returns the reports of reconciliations that were broken off lately. */
export const brokenOff = (
  reports: ReadonlyArray<ReconcileReport>,
  now: number
): ReadonlyArray<ReconcileReport> =>
  reports.filter(({ endedAt, problem }) => problem !== undefined && now - endedAt < tellsForMs)

/**
 * Returns how many events the providers of each tenant have lost, of those that have lost more than
 * they may.
 */
export const lostByTenant = (
  reports: ReadonlyArray<ReconcileReport>,
  now: number
): ReadonlyMap<string, number> => {
  const lost = new Map<string, number>()
  for (const { alertAbove, endedAt, found, tenant } of reports)
    if (found.missing > alertAbove && now - endedAt < tellsForMs)
      lost.set(tenant, (lost.get(tenant) ?? 0) + found.missing)
  return lost
}
