import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { firstSince } from "../broker/scan.ts"
import type { Loose } from "./fact-record.ts"
import { numberIn, planOf, readRecord, textIn } from "./fact-record.ts"
import type { Countable, Period, Totals } from "./fold/totals.ts"
import { afterCounting, beginningOf, countedKinds, noTotals } from "./fold/totals.ts"

/** Number of facts read before completed periods are emitted. */
const segment = 100_000

/** Which facts to sum up. Times in ms since the epoch, of when the broker stored a fact; inclusive. */
export interface TotalsSelection {
  readonly tenant?: string | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly by: Period
}

/** The totals of a tenant within a period. */
export interface TenantTotals {
  readonly tenant: string
  /** ms since the epoch */
  readonly begins: number
  readonly totals: Totals
}

/** Progress of the reading, in sequences of the history. */
export interface TotalsProgress {
  readonly done: number
  readonly all: number
}

const countableIn = (record: Loose): Countable | undefined => {
  const kind = countedKinds.find((kind) => kind === record.kind)
  if (kind === undefined) return undefined
  const attempt = numberIn(record.attempt)
  const reason = textIn(record.reason)
  const plan = planOf(record)
  return {
    kind,
    ...(attempt === undefined ? {} : { attempt }),
    ...(reason === undefined ? {} : { reason }),
    ...(plan === undefined ? {} : { plan })
  }
}

/**
 * Sums up the history by period, in order, and by tenant, by name. Emits a period's totals as soon
 * as it is over, so memory holds at most one period of all tenants. A fact counts for the period in
 * which the broker stored it.
 */
export const readTotals = Effect.fnUntraced(function* <E, R>(
  query: TotalsSelection,
  give: (complete: ReadonlyArray<TenantTotals>) => Effect.Effect<void, E, R>,
  progress: (now: TotalsProgress) => void
) {
  const { names, streamInfo } = yield* Broker
  const { by, since, tenant, until } = query
  const { state } = yield* streamInfo("look at the history", names.history)
  const kept = Math.max(1, state.first_seq)
  const first = since === undefined ? kept : Math.max(kept, yield* firstSince(names.history, since))
  const last =
    until === undefined
      ? state.last_seq
      : Math.min(state.last_seq, (yield* firstSince(names.history, until + 1)) - 1)

  let begins = 0
  let skipped = 0
  const now = new Map<string, Totals>()
  const complete: Array<TenantTotals> = []
  const close = () => {
    for (const [tenant, totals] of [...now].sort(([a], [b]) => (a < b ? -1 : 1)))
      complete.push({ tenant, begins, totals })
    now.clear()
  }
  const show = (next: number) => progress({ done: next - first, all: last - first + 1 })

  // One filter for all kinds: a filter for each kind takes the broker a hundred times as long.
  const { allFacts, fact } = names.subjects
  const subjects = [tenant === undefined ? allFacts : fact(tenant, "*", "*", "*")]
  for (let from = first; from <= last; from += segment) {
    const to = Math.min(last, from + segment - 1)
    yield* readThrough({ stream: names.history, subjects, from, to }, (seen) => {
      const period = beginningOf(Math.floor(Number(seen.nanoseconds) / 1e6), by)
      // After a change of leader, the new leader's clock may be a little behind the old one's.
      if (period > begins) {
        close()
        begins = period
      }
      const record = readRecord(seen.message.string())
      const about = textIn(record?.tenant)
      const counted = record === undefined ? undefined : countableIn(record)
      if (about === undefined) skipped++
      else if (counted !== undefined)
        now.set(about, afterCounting(now.get(about) ?? noTotals, counted))
      show(seen.seq + 1)
    })
    show(to + 1)
    if (complete.length > 0) yield* give(complete.splice(0))
  }
  close()
  if (complete.length > 0) yield* give(complete)
  if (skipped > 0)
    yield* Effect.logWarning(`passed over what is no fact in ${names.history}: ${skipped}`)
})
