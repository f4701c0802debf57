/** What an audit may find. docs/audit.md says what each means and what to do. */
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

/** Something that should not be. Times in ms since the epoch. */
export interface Problem {
  readonly kind: ProblemKind
  readonly tenant?: string
  readonly endpoint?: string
  /** The event's id, where the event is still there. */
  readonly event?: string
  readonly eventSeq?: number
  readonly round?: string
  /** Sequences in HISTORY, of what this is about. */
  readonly seq?: number
  readonly to?: number
  /** Sequence in DEAD. */
  readonly dead?: number
  /** The message that waits: its stream, and its sequence there. */
  readonly stream?: string
  readonly streamSeq?: number
  readonly says: string
}

/** That are listed. */
const maxListedProblems = 10_000

/** Of all problems their number, of the first that are wanted what they are: there may be millions. */
export class ProblemList {
  readonly counts = new Map<ProblemKind, number>()
  readonly list: Array<Problem> = []
  readonly #isWanted: (problem: Problem) => boolean

  constructor(isWanted: (problem: Problem) => boolean) {
    this.#isWanted = isWanted
  }

  /** Counts it; true where it is to be listed. */
  count(problem: Problem): boolean {
    this.counts.set(problem.kind, (this.counts.get(problem.kind) ?? 0) + 1)
    return this.list.length < maxListedProblems && this.#isWanted(problem)
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0)
  }
}
