import { Schema } from "effect"
import { Timestamp } from "../../domain/timestamp.ts"
import { Token } from "../../domain/token.ts"
import { withoutCommands } from "../../text/plain-text.ts"
import { DeadLetterSelection } from "../dead-letters/dead-letter-selection.ts"
import { RedeliveryCursor } from "../dead-letters/redeliver-dead-letters.ts"
import { ReplayCursor, ReplayRequest } from "../replays/replay-events.ts"
import { RecoverySelection } from "../retries/recover-endpoint.ts"
import { RetryCursor, RetrySelection } from "../retries/retry-waiting.ts"

/** Which dead letters are sent again: those of one tenant, or all. */
const RedeliveryJob = Schema.Struct({
  kind: Schema.Literal("redelivery").annotateKey({ description: "What it does." }),
  selection: DeadLetterSelection
})

/** Which events are sent to an endpoint once more. */
const ReplayJob = Schema.Struct({
  kind: Schema.Literal("replay").annotateKey({ description: "What it does." }),
  replay: ReplayRequest
})

/** Which events are audited. Times in ms since the epoch. */
export const AuditRequest = Schema.Struct({
  tenant: Schema.optionalKey(Token).annotateKey({ description: "The name of the tenant." }),
  since: Schema.optionalKey(Timestamp),
  until: Schema.optionalKey(Timestamp)
})
const AuditJob = Schema.Struct({
  kind: Schema.Literal("audit").annotateKey({ description: "What it does." }),
  audit: AuditRequest
})

/** Which waiting deliveries of a tenant are tried now. */
const RetryJob = Schema.Struct({
  kind: Schema.Literal("retry").annotateKey({ description: "What it does." }),
  retry: RetrySelection
})

/** What is sent again of all that failed at an endpoint. */
const RecoveryJob = Schema.Struct({
  kind: Schema.Literal("recovery").annotateKey({ description: "What it does." }),
  recovery: RecoverySelection
})

/** Long work, as it is asked for. */
export const JobTask = Schema.Union([RedeliveryJob, ReplayJob, AuditJob, RetryJob, RecoveryJob])
export type JobTask = typeof JobTask.Type
export type JobKind = JobTask["kind"]

const JobState = Schema.Literals(["waiting", "running", "done", "failed", "cancelled"])

/** How far a job has come: of what is known to be done. */
export const JobProgress = Schema.Struct({
  done: Schema.Int.annotateKey({ description: "How many are done." }),
  total: Schema.Int.annotateKey({ description: "How many there are." })
})
export type JobProgress = typeof JobProgress.Type

const shownFields = {
  id: Schema.String.annotateKey({ description: "The id of the job." }),
  tenant: Schema.String.annotateKey({ description: "Whose it is; `*` for all tenants." }),
  state: JobState.annotateKey({ description: "Its state." }),
  by: Schema.String.annotateKey({ description: "Who asked for it." }),
  createdAt: Timestamp.annotateKey({ description: ", as all times of a job." }),
  endedAt: Schema.optionalKey(Timestamp).annotateKey({ description: "When it ended." }),
  progress: Schema.optionalKey(JobProgress).annotateKey({
    description: "How far it is, while it runs."
  }),
  result: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)).annotateKey({
    description: "What it came to, once it is done."
  }),
  problem: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why it failed, or why it waits."
  })
}

/** A job as the bucket holds it. */
export const JobRecord = Schema.Struct({
  v: Schema.Literal(1),
  ...shownFields,
  task: JobTask,
  console: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "The console that works on it. If another one takes it up, this one ended in the middle of it."
  }),
  endedConsoles: Schema.optionalKey(Schema.Array(Schema.String)).annotateKey({
    description: "Consoles that ended in the middle of it."
  }),
  waitsSince: Schema.optionalKey(Timestamp).annotateKey({
    description: "Since when it waits, if it gave its place to another one:."
  }),
  historySeq: Schema.optionalKey(Schema.Int).annotateKey({
    description:
      "The last fact there was when it was made: what was sent in its name since is its own."
  }),
  /** Failures in a row, without progress in between. */
  failures: Schema.optionalKey(
    Schema.Struct({
      count: Schema.Int,
      done: Schema.Int.annotateKey({ description: "`progress.done` at the last of them." }),
      nextAt: Timestamp.annotateKey({ description: "When it is tried again." })
    })
  ),
  redelivered: Schema.optionalKey(RedeliveryCursor).annotateKey({
    description: "Where a redelivery goes on."
  }),
  replayed: Schema.optionalKey(ReplayCursor).annotateKey({
    description: "Where a replay goes on."
  }),
  retried: Schema.optionalKey(RetryCursor).annotateKey({ description: "Where a retry goes on." })
})
export type JobRecord = typeof JobRecord.Type

/** Consoles that may end in the middle of a job before it fails. */
const maxEndedConsoles = 3

/** Failures in a row, without progress in between, before a job fails: in some 14 minutes. */
export const maxFailures = 20
/** Longest pause before a job is tried again, ms. The first is a second, each next one is twice as long. */
const maxPauseMs = 60_000

/** A job, for whoever asked for it. */
export const JobView = Schema.Struct({
  ...shownFields,
  kind: Schema.Literals(["redelivery", "replay", "audit", "retry", "recovery"]).annotateKey({
    description: "What it does."
  }),
  /** How many consoles have ended in the middle of it, so that another one took it over. */
  asked: Schema.Record(Schema.String, Schema.Unknown).annotateKey({
    description: "What was asked for: the fields of the request, with the defaults of its times."
  }),
  takeovers: Schema.Int.annotateKey({
    description:
      "How many consoles have ended in the middle of it, so that another one took it over."
  })
})
export type JobView = typeof JobView.Type

/** Returns true for a job that is not to be worked on any more. */
export const hasJobEnded = ({ state }: Pick<JobRecord, "state">): boolean =>
  state === "done" || state === "failed" || state === "cancelled"

const encodeTask = Schema.encodeSync(Schema.toCodecJson(JobTask))

/** Ids of dead letters that are shown of those that were asked for. */
const maxShownIds = 20

/** Returns what a job was asked for, as a request says it. */
const askedIn = (task: JobTask): Readonly<Record<string, unknown>> => {
  const { kind, ...rest } = Object(encodeTask(task))
  const {
    asked: _,
    endpoint,
    id,
    tenant,
    to = endpoint,
    ...fields
  } = Object(Object.values(rest)[0])
  const name = to?.id ?? to
  return {
    ...(name === undefined ? {} : { endpoint: name }),
    // The path names it, but for an audit.
    ...(kind === "audit" && tenant !== undefined ? { tenant } : {}),
    ...(id === undefined ? {} : { id: Array.isArray(id) ? id.slice(0, maxShownIds) : id }),
    ...(Array.isArray(id) && id.length > maxShownIds ? { ids: id.length } : {}),
    ...fields
  }
}

/** Returns what is shown of a job. */
export const jobView = ({
  console: _,
  endedConsoles = [],
  failures: __,
  historySeq: ________,
  redelivered: ___,
  replayed: ____,
  retried: _____,
  task,
  v: ______,
  waitsSince: _______,
  problem,
  ...shown
}: JobRecord): JobView => ({
  ...shown,
  ...(problem === undefined ? {} : { problem: withoutCommands(problem) }),
  kind: task.kind,
  asked: askedIn(task),
  takeovers: endedConsoles.length
})

/**
 * Returns a job as a console that has its lease takes it up: to work on it, unless it has ended
 * then. A job in the middle of which three consoles have ended is what ends them.
 *
 * @param name of the console, different from all others.
 * @param now ms since the epoch.
 */
export const takenUp = (job: JobRecord, name: string, now: number): JobRecord => {
  if (hasJobEnded(job)) return job
  const { console: former, endedConsoles: before = [], problem: _, ...rest } = job
  const hasEnded = former !== undefined && former !== name && !before.includes(former)
  const ended = hasEnded ? [...before, former] : before
  const endedConsoles = ended.length === 0 ? {} : { endedConsoles: ended }
  if (ended.length >= maxEndedConsoles)
    return {
      ...rest,
      ...endedConsoles,
      state: "failed",
      endedAt: now,
      problem: `${ended.length} consoles ended while they worked on it (${ended.join(", ")}), so it is not tried again: see their logs, and give consoles more memory or ask for less at once`
    }
  return { ...rest, ...endedConsoles, state: "running", console: name }
}

/**
 * Returns a job as a console leaves it that does not work on it any more, and has not ended: it was
 * stopped, or cut off from the broker. Undefined if nothing changes.
 *
 * @param waitsSince given where it leaves its place to another job: its turn comes behind those that
 *   wait then. Otherwise it keeps its turn.
 */
export const givenUp = (
  job: JobRecord,
  name: string,
  waitsSince?: number
): JobRecord | undefined => {
  const { console: owner, endedConsoles = [], ...rest } = job
  const others = endedConsoles.filter((one) => one !== name)
  if (hasJobEnded(job) || (owner !== name && others.length === endedConsoles.length))
    return undefined
  return {
    ...rest,
    ...(owner === name ? { state: "waiting" as const } : {}),
    ...(owner === name || owner === undefined ? {} : { console: owner }),
    ...(owner !== name || waitsSince === undefined ? {} : { waitsSince }),
    ...(others.length === 0 ? {} : { endedConsoles: others })
  }
}

/**
 * Returns a job whose work is done. Nothing of it is left: what was counted at first and not done by
 * it was done by others meanwhile.
 *
 * @param now ms since the epoch.
 */
export const allDone = (
  job: JobRecord,
  result: Readonly<Record<string, unknown>>,
  now: number
): JobRecord => {
  const { console: _, failures: __, progress, ...rest } = job
  const all = progress === undefined ? {} : { progress: { ...progress, done: progress.total } }
  return { ...rest, ...all, state: "done", endedAt: now, result }
}

/**
 * Returns a job whose work has failed for a reason that may pass: it waits, to be tried again later.
 * It has failed where that was so many times in a row without progress in between.
 *
 * @param now ms since the epoch.
 */
export const triedLater = (job: JobRecord, problem: string, now: number): JobRecord => {
  const { console: _, failures, ...rest } = job
  const done = job.progress?.done ?? 0
  const count = failures === undefined || done > failures.done ? 1 : failures.count + 1
  if (count >= maxFailures)
    return {
      ...rest,
      state: "failed",
      endedAt: now,
      problem: `${problem} (${count} times in a row, so it is not tried again)`
    }
  const nextAt = now + Math.min(maxPauseMs, 1_000 * 2 ** (count - 1))
  return { ...rest, state: "waiting", problem, failures: { count, done, nextAt } }
}
