import { randomBytes } from "node:crypto"
import { Clock, Effect, PartitionedSemaphore, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { RefusedRequests } from "../../metrics/refused-requests.ts"
import { CurrentOnce, type Once } from "../idempotency-key.ts"
import { JobNotFound, JobQuotaReached } from "../refusals.ts"
import type { JobKind, JobRecord, JobTask, JobView } from "./job.ts"
import { hasJobEnded, jobView } from "./job.ts"
import { changeJob, forgetJob, readJob, readJobs, storeJob } from "./job-store.ts"

/** Jobs of one tenant that have not ended; operators have as many of all tenants together. */
export const maxOpenJobs = 20
/** Jobs of one tenant that have ended and are kept: the newest. */
const maxEndedJobs = 200

/** Which jobs are meant: those of a kind, and of one tenant where that is given. */
interface JobScope {
  readonly kind: JobKind
  readonly tenant: string | undefined
}

const isIn = ({ task, tenant }: JobRecord, scope: JobScope): boolean =>
  task.kind === scope.kind && (scope.tenant === undefined || tenant === scope.tenant)

const makeId = (now: number): Effect.Effect<string> =>
  Effect.sync(() => `job-${now.toString(36)}-${randomBytes(4).toString("hex")}`)

/** Makes the id of a job that is to be made once. */
const idOf = ({ at, id }: Once): string => `job-${at.toString(36)}-${id.slice(0, 8)}`

const idPattern = /^job-[0-9a-z]{1,12}-[0-9a-f]{8}$/

/** Lets one request of this process count and store at a time, those of all tenants in turn. */
const counting = PartitionedSemaphore.makeUnsafe<string>({ permits: 1 })

/** Fails where a tenant may have no further job. Forgets the oldest of many that have ended. */
const checkQuota = Effect.fnUntraced(function* (tenant: string) {
  const jobs = yield* readJobs(tenant)
  const ended = jobs.filter(hasJobEnded)
  const count = jobs.length - ended.length
  if (count >= maxOpenJobs) {
    const refused = yield* RefusedRequests
    refused.note("jobs")
    return yield* new JobQuotaReached({ count })
  }
  yield* Effect.forEach(ended.slice(maxEndedJobs), forgetJob, { discard: true })
})

/**
 * Stores a job, unless it is to be made once (`CurrentOnce`) and is there. A console takes it within some seconds. Fails with JobQuotaReached where too many of
 * the tenant have not ended; several consoles may exceed that by one each.
 *
 * @param tenant whose it is; `*` for all tenants.
 * @param by who asks for it, recorded in the history.
 */
export const addJob = Effect.fnUntraced(
  function* (task: JobTask, tenant: string, by: string) {
    const once = yield* CurrentOnce
    const before = once === undefined ? undefined : yield* readJob(idOf(once))
    if (before !== undefined) return jobView(before.record)
    yield* checkQuota(tenant)
    const now = yield* Clock.currentTimeMillis
    const { names, streamInfo } = yield* Broker
    const { state } = yield* streamInfo("look where the history ends", names.history)
    const record: JobRecord = {
      v: 1,
      id: once === undefined ? yield* makeId(now) : idOf(once),
      tenant,
      task,
      by,
      state: "waiting",
      createdAt: now,
      historySeq: state.last_seq
    }
    yield* storeJob(record)
    return jobView(record)
  },
  (adding, _task, tenant) => PartitionedSemaphore.withPermit(counting, tenant, adding)
)

/** Where a page of jobs begins: behind the job that was made then, under this id. */
export const JobPosition = Schema.Struct({ createdAt: Schema.Finite, id: Schema.String })
export type JobPosition = typeof JobPosition.Type

const isBehind = ({ createdAt, id }: JobRecord, after: JobPosition): boolean =>
  createdAt < after.createdAt || (createdAt === after.createdAt && id < after.id)

/** A page of jobs, newest first, and where the next one begins. */
interface JobPage {
  readonly jobs: ReadonlyArray<JobView>
  readonly next: JobPosition | undefined
}

/**
 * Lists jobs, newest first.
 *
 * @param after where the page begins. (Default: at the newest)
 */
export const pageJobs = Effect.fnUntraced(function* (
  scope: JobScope,
  after: JobPosition | undefined,
  limit: number
) {
  const all = (yield* readJobs(scope.tenant)).filter((one) => isIn(one, scope))
  const left = after === undefined ? all : all.filter((one) => isBehind(one, after))
  const page = left.slice(0, limit)
  const last = left.length > limit ? page.at(-1) : undefined
  return {
    jobs: page.map(jobView),
    next: last === undefined ? undefined : { createdAt: last.createdAt, id: last.id }
  } satisfies JobPage
})

/** Shows a job. Fails with JobNotFound. */
export const showJob = Effect.fnUntraced(function* (id: string, scope: JobScope) {
  const stored = idPattern.test(id) ? yield* readJob(id) : undefined
  if (stored === undefined || !isIn(stored.record, scope)) return yield* new JobNotFound({ id })
  return jobView(stored.record)
})

/**
 * Ends a job where it is. What it has done remains; a console that works on it goes on for up to a
 * second. Leaves one alone that has ended.
 */
export const cancelJob = Effect.fnUntraced(function* (id: string, scope: JobScope) {
  yield* showJob(id, scope)
  const now = yield* Clock.currentTimeMillis
  const changed = yield* changeJob(id, (record) =>
    hasJobEnded(record) ? undefined : { ...record, state: "cancelled", endedAt: now }
  )
  return changed === undefined ? yield* new JobNotFound({ id }) : jobView(changed)
})
