import { Duration, Effect, Result } from "effect"
import type { IpNetwork } from "effect/net"
import { Broker } from "../broker/broker.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { type ReconcileReport, readReconcileReport } from "../cluster/reconcile-reports.ts"
import { Invalid } from "../domain/problem.ts"
import { type Source, sourceLabel } from "../domain/source.ts"
import { checkAccount } from "../intake/source-account.ts"
import { listSources } from "../intake/source-store.ts"
import { timers } from "../time/timers.ts"
import { type Reconciled, reconcile, recordForKilled } from "./reconcile.ts"
import { openList } from "./walk.ts"

/** Pause between two looks whether a source is due, ms. */
const usualLookMs = 15_000
/** What happened since then may be on its way still, ms. */
export const underWayMs = 5 * 60_000
/** How far back the first one goes, ms. */
const firstMs = 24 * 60 * 60_000
/** By how much one goes back before the end of the one before: a list may get an event late. */
const overlapMs = 10 * 60_000
/** The longest pause after one that was broken off, ms. */
const maxRetryMs = 10 * 60_000
/** How long one may take, ms. What it has found stays, and the next goes on from the same time. */
const maxRunMs = 30 * 60_000
/** Tenants whose sources are reconciled at the same time; of each tenant one. */
const maxConcurrentTenants = 4

export interface ScheduleOptions {
  /** Networks that may be asked beside public addresses. */
  readonly networks: ReadonlyArray<IpNetwork.IpNetwork>
  /** Hears of each that was done here. */
  readonly done: (source: string, reconciled: Reconciled) => void
  /** (Default: 15 s) */
  readonly lookMs?: number
  /** See `ApiOptions`. */
  readonly firstPauseMs?: number
}

/** Returns whether a source is due. Times in ms since the epoch. */
export const isDue = (
  { reconcile }: Pick<Source, "reconcile">,
  last: Pick<ReconcileReport, "endedAt" | "problem"> | undefined,
  now: number
): boolean => {
  if (reconcile === undefined) return false
  if (last === undefined) return true
  const everyMs = Duration.toMillis(reconcile)
  return (
    now - last.endedAt >= (last.problem === undefined ? everyMs : Math.min(everyMs, maxRetryMs))
  )
}

/**
 * Returns what is asked for next: from the end of what was covered before, and no further back than
 * the provider lists; first from when the source was added. Undefined where that is nothing.
 */
export const nextSpan = (
  { createdAt }: Pick<Source, "createdAt">,
  coveredUntil: number | undefined,
  keepsMs: number,
  now: number
): { readonly since: number; readonly until: number } | undefined => {
  const until = now - underWayMs
  const from =
    coveredUntil === undefined ? Math.max(createdAt, now - firstMs) : coveredUntil - overlapMs
  const since = Math.max(from, now - keepsMs)
  return since < until ? { since, until } : undefined
}

/**
 * Reconciles a source if it is due still; of several gateways one does so.
 *
 * @param said why sources cannot be reconciled, as far as it was logged.
 */
const reconcileOne = Effect.fnUntraced(function* (
  source: Source,
  options: ScheduleOptions,
  said: Map<string, string>
) {
  const last = yield* readReconcileReport(source)
  if (last?.unrecorded !== undefined) yield* recordForKilled(source)
  const now = timers.wallMs()
  if (!isDue(source, last, now)) return
  const { done, firstPauseMs, networks } = options
  const label = sourceLabel(source)
  const account = checkAccount(source, networks.length > 0)
  if (Result.isFailure(account)) {
    const why = new Invalid({ problems: account.failure }).message
    if (said.get(label) === why) return
    said.set(label, why)
    return yield* Effect.logWarning(`${label} cannot be reconciled`, { why })
  }
  said.delete(label)
  const asked = nextSpan(source, last?.coveredUntil, account.success.listing.keepsMs, now)
  if (asked === undefined) return
  const list = yield* openList(account.success, { asked, networks, firstPauseMs })
  const reconciled = yield* reconcile({
    ...{ source, ...asked, list, types: source.reconcileTypes },
    alertAbove: source.alertAbove ?? 0,
    isScheduled: true,
    withinMs: maxRunMs,
    // Another gateway may have done it since.
    unless: Effect.map(readReconcileReport(source), (report) => report?.endedAt !== last?.endedAt)
  })
  const { found, problem } = reconciled
  done(label, reconciled)
  if (problem !== undefined)
    yield* Effect.logWarning(`the reconciliation of ${label} was interrupted`, {
      why: problem
    })
  else if (found.missing > 0)
    yield* Effect.logWarning(
      `${found.missing} events of ${label} had not come in: ${found.fetched} fetched, ${found.asked} asked for`
    )
}, Effect.scoped)

/**
 * Reconciles the sources that want it, each at its interval, until the scope closes. Of several
 * gateways one does each. Tenants do not wait for each other's APIs.
 */
export const reconcileBySchedule = Effect.fnUntraced(function* (options: ScheduleOptions) {
  const { lookMs = usualLookMs } = options
  const broker = yield* Broker
  const underWay = new Set<string>()
  const said = new Map<string, string>()
  const ofTenant = (tenant: string, sources: ReadonlyArray<Source>) =>
    Effect.forEach(sources, (source) =>
      reconcileOne(source, options, said).pipe(
        Effect.catch(({ message }) =>
          Effect.logDebug(`${sourceLabel(source)} is not reconciled here now`, { why: message })
        )
      )
    ).pipe(Effect.ensuring(Effect.sync(() => underWay.delete(tenant))))
  const look = Effect.gen(function* () {
    const byTenant = Map.groupBy(
      (yield* listSources()).map(({ source }) => source).filter(({ reconcile }) => reconcile),
      ({ tenant }) => tenant
    )
    for (const [tenant, sources] of byTenant) {
      if (underWay.has(tenant) || underWay.size >= maxConcurrentTenants) continue
      underWay.add(tenant)
      yield* Effect.forkScoped(Effect.provideService(ofTenant(tenant, sources), Broker, broker))
    }
  })
  yield* Effect.forkScoped(
    keepGoing(
      "reconcile sources",
      Effect.andThen(look, Effect.sleep(lookMs)),
      lookMs,
      Effect.logWarning
    )
  )
})
