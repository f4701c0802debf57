import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { keptSince } from "../broker/kept-since.ts"
import { firstSince } from "../broker/scan.ts"
import type { Loose } from "./fact-record.ts"
import { numberIn, planOf, readRecord, textIn } from "./fact-record.ts"
import type { Groupable, Grouping } from "./fold/groups.ts"
import { Groups } from "./fold/groups.ts"
import { Spread } from "./fold/summary.ts"
import type { Period, Totals } from "./fold/totals.ts"
import { afterCounting, beginningOf, countedKinds, noTotals } from "./fold/totals.ts"

/** Number of facts read before completed periods are emitted. */
const segment = 100_000

/** Which facts to sum up. Times in ms since the epoch, of when the broker stored a fact; inclusive. */
interface CountedSelection {
  readonly tenant?: string | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** The totals of a tenant within a period. */
export interface TenantTotals {
  readonly tenant: string
  /** ms since the epoch */
  readonly begins: number
  readonly totals: Totals
  readonly spread: Spread
}

/** Progress of the reading, in sequences of the history. */
export interface TotalsProgress {
  readonly done: number
  readonly all: number
}

const countedIn = (record: Loose): Groupable | undefined => {
  const kind = countedKinds.find((kind) => kind === record.kind)
  const tenant = textIn(record.tenant)
  if (kind === undefined || tenant === undefined) return undefined
  return {
    kind,
    tenant,
    endpoint: textIn(record.endpoint),
    type: textIn(record.type),
    round: textIn(record.round),
    at: numberIn(record.at),
    eventAt: numberIn(record.eventAt),
    durationMs: numberIn(record.durationMs),
    attempt: numberIn(record.attempt),
    reason: textIn(record.reason),
    plan: planOf(record)
  }
}

/**
 * Reads the facts that are counted, in the order of the history. Logs at the end how many records
 * are no facts. Returns when the oldest fact was stored, ms since the epoch, if facts from before were
 * meant and the history has dropped some; else undefined.
 *
 * @param see called with each, and with when the broker stored it, ms since the epoch.
 * @param pause called after each segment.
 */
const readCounted = Effect.fnUntraced(function* <E, R>(
  { since, tenant, until }: CountedSelection,
  see: (fact: Groupable, storedAt: number) => void,
  pause: Effect.Effect<void, E, R>,
  progress: (now: TotalsProgress) => void
) {
  const { names, streamInfo } = yield* Broker
  const info = yield* streamInfo("look at the history", names.history)
  const { state } = info
  const oldest = keptSince(info)
  const kept = Math.max(1, state.first_seq)
  const first = since === undefined ? kept : Math.max(kept, yield* firstSince(names.history, since))
  const last =
    until === undefined
      ? state.last_seq
      : Math.min(state.last_seq, (yield* firstSince(names.history, until + 1)) - 1)
  let skipped = 0
  const show = (next: number) => progress({ done: next - first, all: last - first + 1 })

  // One filter for all kinds: a filter for each kind takes the broker a hundred times as long.
  const { allFacts, fact } = names.subjects
  const subjects = [tenant === undefined ? allFacts : fact(tenant, "*", "*", "*")]
  for (let from = first; from <= last; from += segment) {
    const to = Math.min(last, from + segment - 1)
    yield* readThrough({ stream: names.history, subjects, from, to }, (seen) => {
      const record = readRecord(seen.message.string())
      const counted = record === undefined ? undefined : countedIn(record)
      if (counted !== undefined) see(counted, Math.floor(Number(seen.nanoseconds) / 1e6))
      else if (textIn(record?.tenant) === undefined) skipped++
      show(seen.seq + 1)
    })
    show(to + 1)
    yield* pause
  }
  if (skipped > 0)
    yield* Effect.logWarning(`skipped records that are not facts in ${names.history}: ${skipped}`)
  return oldest > (since ?? 0) ? oldest : undefined
})

/**
 * Sums up the history by period, in order, and by tenant, by name. Emits a period's totals as soon
 * as it is over, so memory holds at most one period of all tenants. A fact counts for the period in
 * which the broker stored it. Returns how all of them together are distributed, and since when the
 * history has facts if it lacks some that are meant, ms since the epoch.
 */
export const readTotals = Effect.fnUntraced(function* <E, R>(
  { by, ...query }: CountedSelection & { readonly by: Period },
  give: (complete: ReadonlyArray<TenantTotals>) => Effect.Effect<void, E, R>,
  progress: (now: TotalsProgress) => void
) {
  let begins = 0
  const now = new Map<string, { totals: Totals; readonly spread: Spread }>()
  const whole = new Spread()
  const complete: Array<TenantTotals> = []
  const close = () => {
    for (const [tenant, sum] of [...now].sort(([a], [b]) => (a < b ? -1 : 1))) {
      complete.push({ tenant, begins, ...sum })
      whole.add(sum.spread)
    }
    now.clear()
  }
  const giveComplete = Effect.suspend(() =>
    complete.length === 0 ? Effect.void : give(complete.splice(0))
  )
  const see = (fact: Groupable, storedAt: number) => {
    const period = beginningOf(storedAt, by)
    // After a change of leader, the new leader's clock may be a little behind the old one's.
    if (period > begins) {
      close()
      begins = period
    }
    const sum = now.get(fact.tenant) ?? { totals: noTotals, spread: new Spread() }
    sum.totals = afterCounting(sum.totals, fact)
    sum.spread.note(fact)
    now.set(fact.tenant, sum)
  }
  const keptSince = yield* readCounted(query, see, giveComplete, progress)
  close()
  yield* giveComplete
  return { whole, keptSince }
})

/** Sums up the history by endpoint or type, and all of it; `keptSince` as of `readTotals`. */
export const readGroups = Effect.fnUntraced(function* (
  { by, ...query }: CountedSelection & { readonly by: Grouping },
  progress: (now: TotalsProgress) => void
) {
  const groups = new Groups(by)
  const whole = new Spread()
  const see = (fact: Groupable) => {
    groups.note(fact)
    whole.note(fact)
  }
  const keptSince = yield* readCounted(query, see, Effect.void, progress)
  return { groups, whole, keptSince }
})
