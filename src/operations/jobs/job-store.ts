import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { eraseValue, isConflict, readValues, writeValue } from "../../broker/values.ts"
import { readEntry } from "../../cluster/kv-entry.ts"
import { hasJobEnded, JobRecord } from "./job.ts"

/** How long a job that has ended is kept, ms. */
const keptMs = 7 * 24 * 60 * 60 * 1_000
/** How long a job remains with a console that does not renew its lease, ms. */
export const leaseMs = 10_000

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(JobRecord))
const encode = Schema.encodeSync(Schema.fromJsonString(JobRecord))

const jobKey = (id: string): string => `job.${id}`
const leaseKey = (id: string): string => `lease.${id}`

/** A job with its revision in the bucket. */
export interface StoredJob {
  readonly record: JobRecord
  readonly revision: number
}

/** Reads a job from the leader; undefined if there is none (any more). */
export const readJob = Effect.fnUntraced(function* (id: string) {
  const { names } = yield* Broker
  const { revision, text } = yield* readEntry(names.buckets.jobs, jobKey(id))
  const record = text === undefined ? undefined : Option.getOrUndefined(decode(text))
  return record === undefined ? undefined : ({ record, revision } satisfies StoredJob)
})

/** Reads all jobs, newest first. */
export const readJobs = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.jobs, "job.*"))
  return values
    .flatMap(({ text }) => Option.toArray(decode(text)))
    .toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
})

const write = Effect.fnUntraced(function* (record: JobRecord, expected: number) {
  const { names } = yield* Broker
  return yield* writeValue(names.buckets.jobs, jobKey(record.id), encode(record), {
    expected,
    ...(hasJobEnded(record) ? { ttl: keptMs } : {})
  })
})

/** Stores a new job. */
export const storeJob = (record: JobRecord) => write(record, 0)

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

/** The right to work on a job. */
export interface JobLease {
  /** Returns false if another console has taken the job. */
  readonly renew: Effect.Effect<boolean, Effect.Error<ReturnType<typeof writeValue>>, Broker>
  readonly giveBack: Effect.Effect<void, never, Broker>
}

/**
 * Takes the lease of a job; returns undefined if another console has it.
 *
 * @param owner the console, and what tells it from others.
 */
export const takeJob = Effect.fnUntraced(function* (id: string, owner: string) {
  const { names } = yield* Broker
  const bucket = names.buckets.jobs
  const key = leaseKey(id)
  const entry = yield* readEntry(bucket, key)
  if (entry.text !== undefined) return undefined
  let revision = entry.revision
  const put = Effect.suspend(() =>
    writeValue(bucket, key, owner, { expected: revision, ttl: leaseMs })
  ).pipe(
    Effect.map(({ seq }) => {
      revision = seq
      return true
    }),
    Effect.catchIf(isConflict, () => Effect.succeed(false))
  )
  if (!(yield* put)) return undefined
  return {
    renew: put,
    giveBack: Effect.suspend(() => eraseValue(bucket, key, revision)).pipe(Effect.ignore)
  } satisfies JobLease
})
