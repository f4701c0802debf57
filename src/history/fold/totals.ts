import type { Fact, FactKind } from "../../domain/fact.ts"
import { plannedOtherwise } from "../../domain/fact.ts"

/** What happened for a tenant within a period. Every fact counts, repeats too. */
export interface Totals {
  /** Events that were routed. */
  readonly events: number
  /** Deliveries that plans, redeliveries and replays began. */
  readonly begun: number
  readonly skipped: number
  readonly delivered: number
  /** Delivered ones that a former owner recorded. */
  readonly deliveredLate: number
  readonly attemptsFailed: number
  /** Attempts other than the first one of a round. */
  readonly retries: number
  readonly deadLettered: number
  /** Attempts of all delivered and dead-lettered rounds together. */
  readonly attemptsOfEnded: number
  readonly discarded: number
}

export const noTotals: Totals = {
  events: 0,
  begun: 0,
  skipped: 0,
  delivered: 0,
  deliveredLate: 0,
  attemptsFailed: 0,
  retries: 0,
  deadLettered: 0,
  attemptsOfEnded: 0,
  discarded: 0
}

/** Returns the sum of two totals. */
export const addTotals = (one: Totals, other: Totals): Totals => ({
  events: one.events + other.events,
  begun: one.begun + other.begun,
  skipped: one.skipped + other.skipped,
  delivered: one.delivered + other.delivered,
  deliveredLate: one.deliveredLate + other.deliveredLate,
  attemptsFailed: one.attemptsFailed + other.attemptsFailed,
  retries: one.retries + other.retries,
  deadLettered: one.deadLettered + other.deadLettered,
  attemptsOfEnded: one.attemptsOfEnded + other.attemptsOfEnded,
  discarded: one.discarded + other.discarded
})

/** Length of a period, ms. Days are in UTC. */
export const periods = { hour: 3_600_000, day: 86_400_000 } as const
export type Period = keyof typeof periods

/** The beginning of the period that contains a time; both ms since the epoch. */
export const beginningOf = (at: number, period: Period): number =>
  Math.floor(at / periods[period]) * periods[period]

/** Kinds of facts that {@link afterCounting} counts; it ignores all others. */
export const countedKinds = [
  "routed",
  "redelivered",
  "replayed",
  "delivered",
  "delivered-late",
  "attempt-failed",
  "dead-lettered",
  "discarded"
] as const satisfies ReadonlyArray<FactKind>

/** The fields of a fact that are counted. */
export interface Countable extends Pick<Fact, "attempt" | "reason"> {
  readonly kind: FactKind
  readonly plan?:
    | {
        readonly part: number
        readonly endpoints: ReadonlyArray<unknown>
        readonly skipped: ReadonlyArray<unknown>
      }
    | undefined
}

const again = (attempt: number): number => (attempt > 1 ? 1 : 0)

const afterPlan = (
  totals: Totals,
  { endpoints, part, skipped }: NonNullable<Countable["plan"]> = noPlan
): Totals => ({
  ...totals,
  events: totals.events + (part === 0 ? 1 : 0),
  begun: totals.begun + endpoints.length,
  skipped: totals.skipped + skipped.length
})
const noPlan = { part: 0, endpoints: [], skipped: [] }

/** Adds a fact to the totals of its tenant and period. */
export const afterCounting = (totals: Totals, fact: Countable): Totals => {
  const { attempt = 0 } = fact
  switch (fact.kind) {
    case "routed":
      return afterPlan(totals, fact.plan)
    case "redelivered":
    case "replayed":
      return { ...totals, begun: totals.begun + 1 }
    case "delivered":
    case "delivered-late": {
      const isPlannedOtherwise = fact.reason === plannedOtherwise
      const begun = isPlannedOtherwise ? { ...totals, begun: totals.begun + 1 } : totals
      const planned = fact.plan === undefined ? begun : afterPlan(begun, fact.plan)
      return {
        ...planned,
        delivered: planned.delivered + 1,
        deliveredLate: planned.deliveredLate + (fact.kind === "delivered-late" ? 1 : 0),
        retries: planned.retries + again(attempt),
        attemptsOfEnded: planned.attemptsOfEnded + attempt
      }
    }
    case "attempt-failed":
      return {
        ...totals,
        attemptsFailed: totals.attemptsFailed + 1,
        retries: totals.retries + again(attempt)
      }
    case "dead-lettered":
      return {
        ...totals,
        deadLettered: totals.deadLettered + 1,
        attemptsOfEnded: totals.attemptsOfEnded + attempt
      }
    case "discarded":
      return { ...totals, discarded: totals.discarded + 1 }
    default:
      return totals
  }
}
