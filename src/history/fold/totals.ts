import type { Fact } from "../../domain/fact.ts"

/** What happened for a tenant within an hour. Every fact counts, repeats too. */
export interface Totals {
  readonly events: number
  /** Deliveries that plans, redeliveries and replays began. */
  readonly begun: number
  readonly skipped: number
  readonly delivered: number
  readonly attemptsFailed: number
  readonly deadLettered: number
  readonly discarded: number
}

export const noTotals: Totals = {
  events: 0,
  begun: 0,
  skipped: 0,
  delivered: 0,
  attemptsFailed: 0,
  deadLettered: 0,
  discarded: 0
}

const hour = 3_600_000

/** The hour that a fact falls into, by its beginning, ms since the epoch. */
export const hourOf = ({ at }: Pick<Fact, "at">): number => Math.floor(at / hour) * hour

/** The totals of a fact's tenant and hour, with the fact. */
export const afterCounting = (totals: Totals, fact: Fact): Totals => {
  switch (fact.kind) {
    case "routed": {
      const { endpoints = [], part = 0, skipped = [] } = fact.plan ?? {}
      return {
        ...totals,
        events: totals.events + (part === 0 ? 1 : 0),
        begun: totals.begun + endpoints.length,
        skipped: totals.skipped + skipped.length
      }
    }
    case "redelivered":
    case "replayed":
      return { ...totals, begun: totals.begun + 1 }
    case "delivered":
      return { ...totals, delivered: totals.delivered + 1 }
    case "attempt-failed":
      return { ...totals, attemptsFailed: totals.attemptsFailed + 1 }
    case "dead-lettered":
      return { ...totals, deadLettered: totals.deadLettered + 1 }
    case "discarded":
      return { ...totals, discarded: totals.discarded + 1 }
    default:
      return totals
  }
}
