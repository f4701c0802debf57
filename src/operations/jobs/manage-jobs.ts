import { randomBytes } from "node:crypto"
import { Clock, Effect, Schema } from "effect"
import type { JobKind, JobRecord, JobTask } from "./job.ts"
import { hasJobEnded, jobView } from "./job.ts"
import { changeJob, readJob, readJobs, storeJob } from "./job-store.ts"

/** There is no job of this id. */
export class JobNotFound extends Schema.TaggedError<JobNotFound>()("JobNotFound", {
  id: Schema.String
}) {
  override get message() {
    return `there is no job ${this.id}: it ended more than a week ago, or never was`
  }
}

/** Which jobs are meant: those of a kind, and of one tenant where that is given. */
export interface JobScope {
  readonly kind: JobKind
  readonly tenant: string | undefined
}

const isIn = ({ task, tenant }: JobRecord, scope: JobScope): boolean =>
  task.kind === scope.kind && (scope.tenant === undefined || tenant === scope.tenant)

const makeId = (now: number): Effect.Effect<string> =>
  Effect.sync(() => `job-${now.toString(36)}-${randomBytes(4).toString("hex")}`)

const idPattern = /^job-[0-9a-z]{1,12}-[0-9a-f]{8}$/

/**
 * Stores a job. A console takes it within some seconds.
 *
 * @param tenant whose it is; `*` for all tenants.
 * @param by who asks for it, recorded in the history.
 */
export const addJob = Effect.fnUntraced(function* (task: JobTask, tenant: string, by: string) {
  const now = yield* Clock.currentTimeMillis
  const record: JobRecord = {
    v: 1,
    id: yield* makeId(now),
    tenant,
    task,
    by,
    state: "waiting",
    createdAt: now
  }
  yield* storeJob(record)
  return jobView(record)
})

/** Lists jobs, newest first. */
export const listJobs = (scope: JobScope) =>
  Effect.map(readJobs, (all) => all.filter((one) => isIn(one, scope)).map(jobView))

/** Shows a job. Fails with JobNotFound. */
export const showJob = Effect.fnUntraced(function* (id: string, scope: JobScope) {
  const stored = idPattern.test(id) ? yield* readJob(id) : undefined
  if (stored === undefined || !isIn(stored.record, scope)) return yield* new JobNotFound({ id })
  return jobView(stored.record)
})

/** Ends a job where it is. What it has done remains. Leaves one alone that has ended. */
export const cancelJob = Effect.fnUntraced(function* (id: string, scope: JobScope) {
  yield* showJob(id, scope)
  const now = yield* Clock.currentTimeMillis
  const changed = yield* changeJob(id, (record) => {
    if (hasJobEnded(record) || record.isCancelled === true) return undefined
    return record.state === "waiting"
      ? { ...record, isCancelled: true, state: "cancelled", endedAt: now }
      : { ...record, isCancelled: true }
  })
  return changed === undefined ? yield* new JobNotFound({ id }) : jobView(changed)
})
