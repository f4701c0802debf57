import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { Effect, Result, Schema } from "effect"
import type { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { readUser } from "../broker/user.ts"
import { keepLease, takeLease } from "../cluster/lease.ts"
import { readReconcileReport, writeReconcileReport } from "../cluster/reconcile-reports.ts"
import type { Fact } from "../domain/fact.ts"
import type { Reconciliation } from "../domain/reconciliation.ts"
import { type Source, sourceKey, sourceLabel } from "../domain/source.ts"
import { nobody } from "../domain/token.ts"
import { appendFact } from "../history/facts.ts"
import { providerOf } from "../intake/source-provider.ts"
import { countText, spanText } from "../text/quantities.ts"
import { timers } from "../time/timers.ts"
import { makeArrivals } from "./arrivals.ts"
import { Comparison, type Missing } from "./comparison.ts"
import type { ListingApi } from "./walk.ts"
import { wantedTypes } from "./wanted-types.ts"

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

/** Tells the history and the bucket of reports what a reconciliation came to. */
const record = Effect.fnUntraced(function* (
  { alertAbove, by, isScheduled, source }: ReconcileOptions,
  { found, problem }: Reconciled,
  startedAt: number
) {
  const at = timers.wallMs()
  const { id, provider, tenant } = source
  const user = yield* readUser
  const tell = (
    kind: Extract<Fact["kind"], "reconciled" | "provider-lost" | "reconcile-failed">,
    reason?: string
  ) =>
    appendFact(
      {
        ...{ v: 1, kind, at, tenant, endpoint: nobody, by, user, reason, reconciled: found },
        incoming: { source: id, provider }
      },
      `${kind}.${sourceKey(source)}.${startedAt}`
    )
  if (problem === undefined) yield* tell("reconciled")
  else yield* tell("reconcile-failed", problem)
  if (found.missing > alertAbove)
    yield* tell(
      "provider-lost",
      `${countText(found.missing)} of ${countText(found.listed)} events had not come in`
    )
  yield* writeReconcileReport({
    ...{ v: 1, tenant, source: id, provider, startedAt, endedAt: at, found, alertAbove },
    ...(problem === undefined ? {} : { problem }),
    ...(isScheduled === true && problem === undefined ? { coveredUntil: found.until } : {})
  })
})

/**
 * Compares what a provider lists with what came in of a source, stores what is missing as if it had
 * come in, and records what was found. Of several processes one does it at a time: fails with
 * NotReconciled where another one does, or `unless` says that it has.
 */
export const reconcile = Effect.fnUntraced(function* (options: ReconcileOptions) {
  if (options.isDryRun === true) return yield* compare(options, Number.POSITIVE_INFINITY)
  const { source } = options
  const owner = `${hostname()}.${process.pid}.${randomUUID()}`
  const lease = yield* takeLease(`lease.reconcile.${sourceKey(source)}`, owner)
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
    // One that was killed has fetched events, and told nobody.
    const last = yield* readReconcileReport(source)
    const reconciled = yield* compare(options, Math.max(source.createdAt, last?.endedAt ?? 0))
    yield* record(options, reconciled, startedAt)
    return reconciled
  })
  return yield* Effect.raceFirst(work, untilLost).pipe(Effect.ensuring(lease.giveBack))
})
