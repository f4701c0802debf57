import { Context, Effect, Schema } from "effect"
import type { Broker } from "../../broker/broker.ts"
import { BrokerError } from "../../broker/broker-error.ts"
import type { AuditReading } from "../../history/audit/audit-reading.ts"
import type { AuditProblem } from "../../history/audit/problem.ts"
import type { StreamReading } from "../../history/audit/stream-reading.ts"
import { type AuditReport, runAudit } from "../audit/run-audit.ts"
import type { AuditRequest, JobProgress } from "./job.ts"

/** Problems of an audit that a job's result lists: it is one message. */
const maxListed = 100

/** What the audit of a job has found. */
export interface AuditFindings {
  readonly report: AuditReport
  readonly problems: ReadonlyArray<AuditProblem>
}

/** An audit that came to no verdict. */
export class AuditFailed extends Schema.TaggedError<AuditFailed>()("AuditFailed", {
  problem: Schema.String,
  /** True where the same audit may succeed later. */
  mayPass: Schema.Boolean
}) {
  override get message() {
    return this.problem
  }
}

/**
 * Audits for a job.
 *
 * @param begun called once, with what tells how far it has come.
 */
export type AuditWork = (
  request: typeof AuditRequest.Type,
  begun: (progress: () => JobProgress | undefined) => void
) => Effect.Effect<AuditFindings, AuditFailed, Broker>

const left = ({ next, to }: StreamReading): number => Math.max(0, to - next + 1)

const readIn = ({ events, history }: AuditReading): JobProgress => {
  const done = events.messages + history.messages
  return { done, total: done + left(events) + left(history) }
}

const failed = (error: { readonly message: string }) =>
  new AuditFailed({
    problem: error.message,
    mayPass: error instanceof BrokerError && !error.isSenseless
  })

/** Audits in this thread, which it keeps from all else while it reads. */
export const auditHere: AuditWork = (request, begun) =>
  runAudit({ ...request, onBegin: (reading) => begun(() => readIn(reading)) }).pipe(
    Effect.map(({ problems, report }) => ({ report, problems: problems.slice(0, maxListed) })),
    Effect.mapError(failed)
  )

/** Who audits for jobs. (Default: {@link auditHere}) */
export const Auditor = Context.Reference<AuditWork>("petrel/operations/Auditor", {
  defaultValue: () => auditHere
})
