import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { Effect, Result, Schema } from "effect"
import type { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { type ReconcileReport, readReconcileReport } from "../cluster/reconcile-reports.ts"
import { keepLease, takeLease } from "../cluster/work-lease.ts"
import type { Reconciliation } from "../domain/reconciliation.ts"
import { type Source, type SourceName, sourceKey, sourceLabel } from "../domain/source.ts"
import { providerOf } from "../intake/source-provider.ts"
import { spanText } from "../text/quantities.ts"
import { timers } from "../time/timers.ts"
import { makeArrivals } from "./arrivals.ts"
import { Comparison, type Missing } from "./comparison.ts"
import { finishRecording, record } from "./record.ts"
import type { ListingApi } from "./walk.ts"

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")

/**
 * Returns what says whether a provider's type is of a list of patterns, in which `*` stands for any
 * characters: `invoice.*`, `orders/*`. A type that is not known is wanted: nothing is left out
 * unseen.
 */
export const wantedTypes = (
  patterns: ReadonlyArray<string> | undefined
): ((type: string | undefined) => boolean) => {
  if (patterns === undefined || patterns.includes("*")) return () => true
  const whole = new RegExp(
    `^(?:${patterns.map((pattern) => pattern.split("*").map(escaped).join(".*")).join("|")})$`,
    "s"
  )
  return (type) => type === undefined || whole.test(type)
}

/** A source cannot be reconciled now. */
export class NotReconciled extends Schema.TaggedError<NotReconciled>()("NotReconciled", {
  message: Schema.String
}) {}

export interface ReconcileOptions {
  readonly source: Source
  /** ms since the epoch. */
  readonly since: number
  readonly until: number
  readonly list: ListingApi
  /** Patterns of types; undefined for those that the webhook gets, or all. */
  readonly types?: ReadonlyArray<string> | undefined
  /** More missing events than this are news of a failure. */
  readonly alertAbove: number
  /** Only counts what is missing, and tells nobody. */
  readonly isDryRun?: boolean
  /** Whether all up to `until` is covered by schedule then. */
  readonly isScheduled?: boolean
  /** How long it may take, ms. (Default: as long as it does) */
  readonly withinMs?: number
  /** Whether it is not needed any more, asked once no other process can do it. */
  readonly unless?: Effect.Effect<boolean, BrokerError, Broker>
  /** Who asks for it, recorded in the history. */
  readonly by?: string | undefined
  readonly onMissing?: (missing: Missing) => Effect.Effect<void>
}

/** What a reconciliation came to. */
export interface Reconciled {
  readonly found: Reconciliation
  /** Why it was broken off, one sentence; undefined if it was not. */
  readonly problem: string | undefined
}

const noCertificate = () => Promise.reject(new Error("nothing is verified"))

/** @param reportedUntil see `makeArrivals`. */
const compare = Effect.fnUntraced(function* (options: ReconcileOptions, reportedUntil: number) {
  const { isDryRun, list, onMissing = () => Effect.void, since, source, types, until } = options
  const { withinMs } = options
  const provider = providerOf(source, timers.wallMs(), noCertificate)
  if (Result.isFailure(provider))
    return yield* new NotReconciled({ message: provider.failure.join("; ") })
  const { read } = provider.success
  const { lookUp } = yield* makeArrivals(source, since, reportedUntil, list.stateOf)
  const begin = (patterns: ReadonlyArray<string> | undefined) =>
    new Comparison({
      ...{ source, asked: { since, until }, read, lookUp, onMissing },
      isWanted: wantedTypes(patterns),
      obtain: isDryRun === true ? undefined : list.obtain
    })
  let comparison = begin(types)
  const walk = Effect.gen(function* () {
    if (types === undefined) comparison = begin(yield* list.types)
    yield* list.walk((page) => comparison.take(page))
  })
  const result = yield* Effect.result(
    withinMs === undefined
      ? walk
      : Effect.timeoutOrElse(walk, {
          duration: withinMs,
          orElse: () => new NotReconciled({ message: `it took longer than ${spanText(withinMs)}` })
        })
  )
  return {
    found: comparison.found,
    problem: Result.isFailure(result) ? result.failure.message : undefined
  } satisfies Reconciled
})

const reportOf = (
  { alertAbove, isScheduled, source }: ReconcileOptions,
  { found, problem }: Reconciled,
  startedAt: number
): ReconcileReport => {
  const { id, provider, tenant } = source
  return {
    ...{ v: 1, tenant, source: id, provider, startedAt, endedAt: timers.wallMs() },
    ...{ found, alertAbove },
    ...(problem === undefined ? {} : { problem }),
    ...(isScheduled === true && problem === undefined ? { coveredUntil: found.until } : {})
  }
}

/** Takes the right to reconcile a source; undefined if another process has it. */
const leaseOf = (source: SourceName) =>
  takeLease(`lease.reconcile.${sourceKey(source)}`, `${hostname()}.${process.pid}.${randomUUID()}`)

/** Records what a process that was killed has reported, and did not record. */
export const recordForKilled = Effect.fnUntraced(function* (source: SourceName) {
  const lease = yield* leaseOf(source)
  if (lease === undefined) return
  yield* readReconcileReport(source).pipe(
    Effect.flatMap((report) => (report === undefined ? Effect.void : finishRecording(report))),
    Effect.ensuring(lease.giveBack)
  )
})

/**
 * Compares what a provider lists with what came in of a source, stores what is missing as if it had
 * come in, and records what was found. Of several processes one does it at a time: fails with
 * NotReconciled where another one does, or `unless` says that it has.
 */
export const reconcile = Effect.fnUntraced(function* (options: ReconcileOptions) {
  if (options.isDryRun === true) return yield* compare(options, Number.POSITIVE_INFINITY)
  const { source } = options
  const lease = yield* leaseOf(source)
  if (lease === undefined)
    return yield* new NotReconciled({
      message: `${sourceLabel(source)} is being reconciled by another process: wait until it is done`
    })
  const startedAt = timers.wallMs()
  const untilLost = Effect.andThen(
    keepLease(lease, Effect.undefined),
    new NotReconciled({
      message: `the lease of ${sourceLabel(source)} was lost: the broker did not answer for seconds; run this again`
    })
  )
  const work = Effect.gen(function* () {
    if (options.unless !== undefined && (yield* options.unless))
      return yield* new NotReconciled({
        message: `${sourceLabel(source)} was reconciled by another process just now`
      })
    const last = yield* readReconcileReport(source)
    if (last !== undefined) yield* finishRecording(last)
    // One that was killed before it reported has fetched events of which nobody knows.
    const reconciled = yield* compare(options, Math.max(source.createdAt, last?.endedAt ?? 0))
    yield* record(reportOf(options, reconciled, startedAt), options.by)
    return reconciled
  })
  return yield* Effect.raceFirst(work, untilLost).pipe(Effect.ensuring(lease.giveBack))
})
