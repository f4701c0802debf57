import { Effect } from "effect"
import type { BrokerOptions } from "../../../broker/connection.ts"
import type { AuditFindings, AuditWork } from "../../../operations/jobs/audit-work.ts"
import { AuditFailed, Auditor } from "../../../operations/jobs/audit-work.ts"
import type { AuditRequest, JobProgress } from "../../../operations/jobs/job.ts"
import { siblingScript, threadResult } from "../../../projection/lasting-thread.ts"
import { type LoggedLine, logFromThread } from "../../../projection/thread-messages.ts"
import { maxHeapMb } from "./audit.ts"

/** What the thread of a job's audit is started with. */
export interface AuditJobData {
  readonly broker: BrokerOptions
  readonly request: typeof AuditRequest.Type
}

export type FromAuditJob =
  | LoggedLine
  | { readonly tells: "progress"; readonly progress: JobProgress }
  | { readonly tells: "found"; readonly findings: AuditFindings }
  | { readonly tells: "failed"; readonly problem: string; readonly mayPass: boolean }

/**
 * Returns what audits in a thread of its own, with a connection of its own: an audit reads all events
 * and facts of its range, and the console would answer late meanwhile.
 *
 * @param heapMb most that the heap of the thread may take, MiB. (Default: 512)
 */
export const auditInThread =
  (broker: BrokerOptions, heapMb = maxHeapMb): AuditWork =>
  (request, begun) =>
    Effect.gen(function* () {
      const run = Effect.runForkWith(yield* Effect.context<never>())
      let progress: JobProgress | undefined
      begun(() => progress)
      const ended = yield* threadResult(
        {
          script: siblingScript(import.meta.url, "audit-job-thread"),
          data: { broker, request } satisfies AuditJobData,
          maxHeapMb: heapMb
        },
        (message: FromAuditJob) => {
          if (message.tells === "line") run(logFromThread(message))
          if (message.tells === "progress") ({ progress } = message)
          return message.tells === "found" || message.tells === "failed" ? message : undefined
        }
      ).pipe(
        Effect.mapError(
          ({ why }) =>
            new AuditFailed({
              problem: `the thread of the audit has ended (${why}): audit a shorter range`,
              mayPass: false
            })
        )
      )
      if (ended.tells === "found") return ended.findings
      return yield* new AuditFailed({ problem: ended.problem, mayPass: ended.mayPass })
    })

/** Has the audits of jobs run in threads of their own. */
export const auditsInThreads = (broker: BrokerOptions) =>
  Effect.provideService(Auditor, auditInThread(broker))
