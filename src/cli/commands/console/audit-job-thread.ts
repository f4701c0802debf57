import { parentPort, workerData } from "node:worker_threads"
import { Cause, Effect, Exit } from "effect"
import { connectTo } from "../../../broker/connection.ts"
import { AuditFailed, auditHere } from "../../../operations/jobs/audit-work.ts"
import type { JobProgress } from "../../../operations/jobs/job.ts"
import { loggingFromThread } from "../../../projection/thread-messages.ts"
import type { AuditJobData, FromAuditJob } from "./audit-job.ts"

/* The thread of a job's audit: it reads events and facts with a connection of its own. */

/** How often it says how far it has come, ms. */
const tellEveryMs = 250

const { broker, request }: AuditJobData = workerData
const tell = (message: FromAuditJob) => parentPort?.postMessage(message)

let progress: () => JobProgress | undefined = () => undefined
setInterval(() => {
  const now = progress()
  if (now !== undefined) tell({ tells: "progress", progress: now })
}, tellEveryMs).unref()

const connection = connectTo({ ...broker, clientName: "petrel audit" })
const audit = auditHere(request, (told) => {
  progress = told
}).pipe(
  Effect.provide(connection),
  Effect.catchTag("BrokerUnusable", ({ message }) =>
    Effect.fail(new AuditFailed({ problem: message, mayPass: true }))
  ),
  Effect.tapCause((cause) =>
    cause.reasons.some(Cause.isDieReason)
      ? Effect.logError("the audit of a job met a defect", cause)
      : Effect.void
  ),
  Effect.provide(loggingFromThread(tell))
)

Effect.runFork(audit).addObserver((exit) => {
  if (Exit.isSuccess(exit)) tell({ tells: "found", findings: exit.value })
  else {
    const error = exit.cause.reasons.find(Cause.isFailReason)?.error
    const problem = error?.problem ?? "a defect: see the log of the console"
    tell({ tells: "failed", problem, mayPass: error?.mayPass ?? false })
  }
  parentPort?.close()
})
