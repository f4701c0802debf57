import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { FollowedEntries } from "../../broker/bucket-follow.ts"
import { eraseValue, isConflict, readEntry, readValues, writeValue } from "../../broker/values.ts"
import { takeLease } from "../../cluster/work-lease.ts"
import { nobody } from "../../domain/token.ts"
import { allTenants } from "../token.ts"
import { hasJobEnded, JobRecord } from "./job.ts"
import type { OpenJob } from "./job-queue.ts"

/** How long a job that has ended is kept, ms. */
const keptMs = 7 * 24 * 60 * 60 * 1_000

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(JobRecord))
/**
 * Reads a job to work on. One with a field that this version does not know was asked for at a newer
 * console: without that condition it would send more than was asked for.
 */
const decodeKnown = Schema.decodeUnknownOption(Schema.fromJsonString(JobRecord), {
  onExcessProperty: "error"
})
const encode = Schema.encodeSync(Schema.fromJsonString(JobRecord))

/** @param tenant `*` for jobs of all tenants. */
const jobKey = (tenant: string, id: string): string =>
  `job.${tenant === allTenants ? nobody : tenant}.${id}`
const leaseKey = (id: string): string => `lease.${id}`

/** A job with its revision in the bucket. */
interface StoredJob {
  readonly record: JobRecord
  readonly revision: number
}

/** Reads a job from the leader; undefined if there is none (any more). */
export const readJob = Effect.fnUntraced(function* (id: string) {
  const { names } = yield* Broker
  const { revision, text } = yield* readEntry(names.buckets.jobs, `job.*.${id}`)
  const record = text === undefined ? undefined : Option.getOrUndefined(decode(text))
  return record === undefined ? undefined : ({ record, revision } satisfies StoredJob)
})

/**
 * Reads jobs, newest first.
 *
 * @param tenant whose; `*` for those of all tenants together. (Default: everybody's)
 */
export const readJobs = Effect.fnUntraced(function* (tenant?: string) {
  const { names } = yield* Broker
  const keys = tenant === undefined ? "job.*.*" : jobKey(tenant, "*")
  const values = yield* Stream.runCollect(readValues(names.buckets.jobs, keys))
  return values
    .flatMap(({ text }) => Option.toArray(decode(text)))
    .toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
})

const write = Effect.fnUntraced(function* (record: JobRecord, expected: number) {
  const { names } = yield* Broker
  return yield* writeValue(names.buckets.jobs, jobKey(record.tenant, record.id), encode(record), {
    expected,
    ...(hasJobEnded(record) ? { ttl: keptMs } : {})
  })
})

/** Stores a new job. */
export const storeJob = (record: JobRecord) => write(record, 0)

/** Removes a job that has ended. */
export const forgetJob = Effect.fnUntraced(function* ({ id, tenant }: JobRecord) {
  const { names } = yield* Broker
  yield* eraseValue(names.buckets.jobs, jobKey(tenant, id))
})

/**
 * Changes a job by compare-and-set. `change` is called again if another write was faster; it returns
 * undefined to leave the job as it is. Returns the job afterwards; undefined if there is none.
 */
export const changeJob = Effect.fnUntraced(function* (
  id: string,
  change: (record: JobRecord) => JobRecord | undefined
) {
  while (true) {
    const stored = yield* readJob(id)
    if (stored === undefined) return undefined
    const changed = change(stored.record)
    if (changed === undefined) return stored.record
    const isWritten = yield* write(changed, stored.revision).pipe(
      Effect.as(true),
      Effect.catchIf(isConflict, () => Effect.succeed(false))
    )
    if (isWritten) return changed
  }
})

/**
 * Takes the lease of a job; returns undefined if another console has it.
 *
 * @param owner the console, and what tells it from others.
 */
export const takeJob = (id: string, owner: string) => takeLease(leaseKey(id), owner)

/** The jobs of the bucket that have not ended, by their keys. */
export class OpenJobs implements FollowedEntries {
  readonly #jobs = new Map<string, OpenJob>()

  hear(key: string, text: string | undefined): void {
    const job = text === undefined ? undefined : Option.getOrUndefined(decodeKnown(text))
    if (job === undefined || hasJobEnded(job)) this.#jobs.delete(key)
    else {
      const { console, createdAt, endedConsoles = [], failures, id, task, tenant } = job
      const since = job.waitsSince ?? createdAt
      const notBefore = failures?.nextAt ?? 0
      const about = { id, tenant, kind: task.kind, since, notBefore, console, endedConsoles }
      this.#jobs.set(key, about)
    }
  }

  all(): ReadonlyArray<OpenJob> {
    return [...this.#jobs.values()]
  }
}
