import type { AuditProblem } from "./problem.ts"
import type { AuditReach } from "./reach.ts"

/**
 * A gap of more sequences than any stream stores: the event stream was removed and made again,
 * where its sequences begin far beyond (`beyondRemoved`). What it held is not known.
 */
const remadeGap = 2 ** 40

/** Consecutive events that facts are about, and when the first and the last were stored. */
interface Run {
  from: number
  to: number
  /** ms since the epoch */
  fromAt: number
  toAt: number
}

/**
 * Which of the events that have left the event stream were routed: facts are about them. An event
 * that left it before a router took it has none, and no worker knows that there was one.
 */
export class RoutedEvents {
  /** Ordered by sequence. Facts come nearly in the order of their events, so these are few. */
  readonly #runs: Array<Run> = []
  readonly #end: number

  /** @param end the first sequence that is still stored. */
  constructor(end: number) {
    this.#end = end
  }

  /**
   * Records that a fact is about an event.
   *
   * @param at when the event was stored, ms since the epoch.
   */
  add(seq: number, at: number): void {
    if (seq < 1 || seq >= this.#end) return
    const after = this.#firstAfter(seq)
    const before = this.#runs[after - 1]
    if (before !== undefined && seq <= before.to) return
    const next = this.#runs[after]
    if (before?.to === seq - 1) {
      before.to = seq
      before.toAt = at
      if (next?.from !== seq + 1) return
      before.to = next.to
      before.toAt = next.toAt
      this.#runs.splice(after, 1)
    } else if (next?.from === seq + 1) {
      next.from = seq
      next.fromAt = at
    } else this.#runs.splice(after, 0, { from: seq, to: seq, fromAt: at, toAt: at })
  }

  /**
   * Returns the events of a range that left the stream without a plan: between two that were
   * routed, the first of them stored since the history has the plans of all events.
   */
  lost({
    plansSince,
    scope
  }: Pick<AuditReach, "plansSince" | "scope">): ReadonlyArray<AuditProblem> {
    const found: Array<AuditProblem> = []
    let last: Run | undefined
    for (const run of [...this.#runs, undefined]) {
      const gap = { from: (last?.to ?? 0) + 1, to: (run?.from ?? this.#end) - 1 }
      const isKnown = last === undefined ? scope.isWhole : last.toAt >= plansSince
      const isWithin =
        (last?.toAt ?? 0) <= scope.until && (run?.fromAt ?? Number.POSITIVE_INFINITY) >= scope.since
      const isGap = gap.from <= gap.to && gap.to - gap.from < remadeGap
      if (isKnown && isWithin && isGap)
        found.push(lostProblem({ ...gap, after: last?.toAt, before: run?.fromAt }))
      last = run
    }
    return found
  }

  /** Index of the first run that begins after a sequence. */
  #firstAfter(seq: number): number {
    let low = 0
    let high = this.#runs.length
    // Most facts are about the newest event.
    if ((this.#runs.at(-1)?.from ?? 0) <= seq) return high
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#runs[middle]?.from ?? 0) <= seq) low = middle + 1
      else high = middle
    }
    return low
  }
}

interface Gap {
  readonly from: number
  readonly to: number
  /** When the events around it were stored, ms since the epoch. */
  readonly after: number | undefined
  readonly before: number | undefined
}

const lostProblem = ({ after, before, from, to }: Gap): AuditProblem => {
  const moment = (at: number) => new Date(at).toISOString()
  const bounds = [
    ...(after === undefined ? [] : [`after ${moment(after)}`]),
    ...(before === undefined ? [] : [`before ${moment(before)}`])
  ]
  const stored = ["stored", bounds.join(" and ")].join(" ").trimEnd()
  return {
    kind: "event-lost",
    eventSeq: from,
    toEventSeq: to,
    says:
      from === to
        ? `event ${from} was ${stored}, and left the event stream before it was routed: publish it again`
        : `events ${from} to ${to} were ${stored}, and left the event stream before they were routed: publish them again`
  }
}
