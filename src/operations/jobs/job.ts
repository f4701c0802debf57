import { Schema } from "effect"
import { DeadLetterSelection } from "../dead-letters/dead-letter-selection.ts"
import { ReplayRequest } from "../replays/replay-request.ts"

/** Which dead letters are sent again: those of one tenant, or all. */
export const RedeliveryJob = Schema.Struct({
  kind: Schema.Literal("redelivery"),
  selection: DeadLetterSelection
})

/** Which events are sent to an endpoint once more. */
export const ReplayJob = Schema.Struct({ kind: Schema.Literal("replay"), replay: ReplayRequest })

/** Which events are audited. Times in ms since the epoch. */
export const AuditRequest = Schema.Struct({
  tenant: Schema.optionalKey(Schema.String),
  since: Schema.optionalKey(Schema.Finite),
  until: Schema.optionalKey(Schema.Finite)
})
export const AuditJob = Schema.Struct({ kind: Schema.Literal("audit"), audit: AuditRequest })

/** Long work, as it is asked for. */
export const JobTask = Schema.Union([RedeliveryJob, ReplayJob, AuditJob])
export type JobTask = typeof JobTask.Type
export type JobKind = JobTask["kind"]

export const JobState = Schema.Literals(["waiting", "running", "done", "failed", "cancelled"])
export type JobState = typeof JobState.Type

/** How far a job has come: of what is known to be done. */
export const JobProgress = Schema.Struct({ done: Schema.Int, total: Schema.Int })
export type JobProgress = typeof JobProgress.Type

const shownFields = {
  id: Schema.String,
  /** Whose it is; `*` for all tenants. */
  tenant: Schema.String,
  state: JobState,
  /** Who asked for it. */
  by: Schema.String,
  /** ms since the epoch, as all times of a job. */
  createdAt: Schema.Finite,
  endedAt: Schema.optionalKey(Schema.Finite),
  progress: Schema.optionalKey(JobProgress),
  /** What it came to, once it is done. */
  result: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  /** Why it failed, or why it waits. */
  problem: Schema.optionalKey(Schema.String)
}

/** A job as the bucket holds it. */
export const JobRecord = Schema.Struct({
  v: Schema.Literal(1),
  ...shownFields,
  task: JobTask,
  /** Somebody wants it to end. */
  isCancelled: Schema.optionalKey(Schema.Literal(true))
})
export type JobRecord = typeof JobRecord.Type

/** A job, for whoever asked for it. */
export const JobView = Schema.Struct({
  ...shownFields,
  kind: Schema.Literals(["redelivery", "replay", "audit"])
})
export type JobView = typeof JobView.Type

/** Returns true for a job that is not to be worked on any more. */
export const hasJobEnded = ({ state }: Pick<JobRecord, "state">): boolean =>
  state === "done" || state === "failed" || state === "cancelled"

/** Returns what is shown of a job. */
export const jobView = ({ isCancelled: _, task, v: __, ...shown }: JobRecord): JobView => ({
  ...shown,
  kind: task.kind
})
