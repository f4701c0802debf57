/** Problems that an audit may find. docs/audit.md explains each and what to do. */
export const problemKinds = [
  "missing",
  "overdue",
  "unrouted",
  "plan-incomplete",
  "plan-omits",
  "plan-adds",
  "plan-stale",
  "plans-differ",
  "contradiction",
  "outcome-without-route",
  "outcome-before-route",
  "outcome-without-event",
  "attempts-out-of-sequence",
  "history-gap",
  "configuration-gap",
  "configuration-differs",
  "event-gap",
  "event-replaced",
  "fact-before-event",
  "unreadable-fact",
  "unreadable-message",
  "dead-letter-missing",
  "dead-letter-without-fact"
] as const
export type ProblemKind = (typeof problemKinds)[number]

/** A contradiction or a loss that an audit found. Times in ms since the epoch. */
export interface Problem {
  readonly kind: ProblemKind
  readonly tenant?: string
  readonly endpoint?: string
  /** The event's id, if the event is still stored. */
  readonly event?: string
  readonly eventSeq?: number
  readonly round?: string
  /** Sequences in HISTORY: of the fact, or of the first and the last one. */
  readonly seq?: number
  readonly to?: number
  /** Sequence in DEAD. */
  readonly dead?: number
  /** The waiting message: its stream, and its sequence there. */
  readonly stream?: string
  readonly streamSeq?: number
  readonly says: string
}

/** Maximum number of listed problems. */
const maxListedProblems = 10_000

/** Counts all problems and lists the first wanted ones: there may be millions. */
export class ProblemList {
  readonly counts = new Map<ProblemKind, number>()
  readonly list: Array<Problem> = []
  readonly #isWanted: (problem: Problem) => boolean

  constructor(isWanted: (problem: Problem) => boolean) {
    this.#isWanted = isWanted
  }

  /** Counts a problem; returns true if it is to be listed. */
  count(problem: Problem): boolean {
    this.counts.set(problem.kind, (this.counts.get(problem.kind) ?? 0) + 1)
    return this.list.length < maxListedProblems && this.#isWanted(problem)
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0)
  }
}
