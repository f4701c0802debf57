import { Schema } from "effect"

/** Problems that an audit may find. docs/operate/audit.md explains each and what to do. */
const problemKinds = [
  "missing",
  "overdue",
  "unrouted",
  "plan-incomplete",
  "plan-omits",
  "plan-adds",
  "plan-deadline",
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
  "configuration-conflict",
  "event-gap",
  "event-gone",
  "event-lost",
  "event-not-copied",
  "event-replaced",
  "source-diverged",
  "intake-lost",
  "intake-gap",
  "event-without-intake",
  "fact-before-event",
  "unreadable-fact",
  "unreadable-message",
  "dead-letter-missing",
  "dead-letter-without-fact"
] as const
export type ProblemKind = (typeof problemKinds)[number]

/** A contradiction or a loss that an audit found. Times in ms since the epoch. */
export const AuditProblem = Schema.Struct({
  kind: Schema.Literals(problemKinds),
  tenant: Schema.optionalKey(Schema.String),
  endpoint: Schema.optionalKey(Schema.String),
  /** The event's id, if the event is still stored. */
  event: Schema.optionalKey(Schema.String),
  eventSeq: Schema.optionalKey(Schema.Int),
  /** Of several events, the last. */
  toEventSeq: Schema.optionalKey(Schema.Int),
  round: Schema.optionalKey(Schema.String),
  /** Sequences in HISTORY: of the fact, or of the first and the last one. */
  seq: Schema.optionalKey(Schema.Int),
  to: Schema.optionalKey(Schema.Int),
  /** Sequence in DEAD. */
  dead: Schema.optionalKey(Schema.Int),
  /** A message: its stream, and its sequence there. */
  stream: Schema.optionalKey(Schema.String),
  streamSeq: Schema.optionalKey(Schema.Int),
  says: Schema.String
})
export type AuditProblem = typeof AuditProblem.Type

/** Maximum number of listed problems. */
const maxListedProblems = 10_000

/** Counts all problems and lists the first wanted ones: there may be millions. */
export class ProblemList {
  readonly counts = new Map<ProblemKind, number>()
  readonly list: Array<AuditProblem> = []
  readonly #isWanted: (problem: AuditProblem) => boolean

  constructor(isWanted: (problem: AuditProblem) => boolean) {
    this.#isWanted = isWanted
  }

  /** Counts a problem; returns true if it is to be listed. */
  count(problem: AuditProblem): boolean {
    this.counts.set(problem.kind, (this.counts.get(problem.kind) ?? 0) + 1)
    return this.list.length < maxListedProblems && this.#isWanted(problem)
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0)
  }
}
