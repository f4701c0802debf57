import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isConflict, readValues, writeValue } from "../../broker/values.ts"
import { readEntry } from "../../cluster/kv-entry.ts"
import { takeLease } from "../../cluster/lease.ts"
import { hasJobEnded, JobRecord } from "./job.ts"

/** How long a job that has ended is kept, ms. */
const keptMs = 7 * 24 * 60 * 60 * 1_000

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

/**
 * Takes the lease of a job; returns undefined if another console has it.
 *
 * @param owner the console, and what tells it from others.
 */
export const takeJob = (id: string, owner: string) => takeLease(leaseKey(id), owner)
