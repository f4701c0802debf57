import type { RoundAt } from "../fact-record.ts"
import type { DeadLetterWithoutFact, MissingDeadLetter } from "./dead-letter-check.ts"
import type { PendingMessage, UnreadableMessage } from "./pending-scan.ts"
import type { AuditProblem } from "./problem.ts"
import type { AuditReach } from "./reach.ts"

/** A delivery that waits although its deadline has passed. */
export interface Overdue extends PendingMessage {
  readonly deadline: number
}

/** What the audit found in addition to the facts. */
export interface Findings {
  readonly reach: AuditReach
  /** Changes of endpoints that the history has and the bucket has not. */
  readonly misconfigured: ReadonlyArray<AuditProblem>
  /** Sources that lost what was copied from them. */
  readonly diverged: ReadonlyArray<AuditProblem>
  readonly overdue: ReadonlyArray<Overdue>
  /** Waiting messages that this version cannot read. */
  readonly unreadable: ReadonlyArray<UnreadableMessage>
  /** True if the router need not have finished the round's event yet. */
  readonly mayBeUnderWay: (round: RoundAt) => boolean
  /** Events up to this sequence should have been routed. */
  readonly lastDue: number
  readonly missingDeadLetters: ReadonlyArray<MissingDeadLetter>
  readonly deadLettersWithoutFact: ReadonlyArray<DeadLetterWithoutFact>
}
