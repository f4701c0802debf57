import { randomBytes } from "node:crypto"
import { Cause, Clock, Effect, Exit, FiberMap } from "effect"
import { BrokerError } from "../../broker/broker-error.ts"
import { PublishError } from "../../broker/publisher.ts"
import { keepLease, type Lease } from "../../cluster/lease.ts"
import type { JobRecord } from "./job.ts"
import { hasJobEnded } from "./job.ts"
import { changeJob, readJob, readJobs, takeJob } from "./job-store.ts"
import type { JobWatch } from "./job-work.ts"
import { carryOutJob } from "./job-work.ts"

/** Jobs that one console works on at the same time. */
const maxJobs = 4
/** Pause between looks for jobs that nobody works on. */
const lookEvery = "1 second"

/** Why a job's work is broken off. */
type Interruption = "cancelled" | "lost"

/** Stores how far a job has come; says when it is to be broken off. */
const storeProgress = Effect.fnUntraced(function* (id: string, watch: JobWatch) {
  const progress = watch.progress()
  const record = yield* changeJob(id, (before) =>
    progress === undefined ||
    hasJobEnded(before) ||
    JSON.stringify(before.progress) === JSON.stringify(progress)
      ? undefined
      : { ...before, progress }
  )
  return record === undefined || record.isCancelled === true ? ("cancelled" as const) : undefined
})

/** Failures after which the same work may succeed. */
const isPassing = (error: unknown): boolean =>
  error instanceof BrokerError || error instanceof PublishError

/** How a job goes on after its work has come to an end; undefined to be tried again. */
const endOf = (
  exit: Exit.Exit<Record<string, unknown> | Interruption, unknown>
): Partial<JobRecord> | undefined => {
  if (Exit.isSuccess(exit)) {
    if (exit.value === "lost") return undefined
    return exit.value === "cancelled"
      ? { state: "cancelled" }
      : { state: "done", result: exit.value as Record<string, unknown> }
  }
  const { cause } = exit
  if (Cause.hasInterruptsOnly(cause)) return undefined
  const error = cause.reasons.find(Cause.isFailReason)?.error
  if (error !== undefined && isPassing(error)) return undefined
  const problem = error instanceof Error ? error.message : "a defect; the log of the console has it"
  return { state: "failed", problem }
}

/** Works on a job whose lease is held. */
const work = (id: string, lease: Lease) =>
  Effect.gen(function* () {
    const stored = yield* readJob(id)
    if (stored === undefined || hasJobEnded(stored.record)) return
    const watch: JobWatch = { progress: () => undefined }
    const record = yield* changeJob(id, (before) =>
      hasJobEnded(before) || before.state === "running"
        ? undefined
        : { ...before, state: "running" }
    )
    if (record === undefined || hasJobEnded(record)) return
    const exit = yield* Effect.exit(
      Effect.raceFirst(carryOutJob(record, watch), keepLease(lease, storeProgress(id, watch)))
    )
    if (Exit.isFailure(exit) && exit.cause.reasons.some(Cause.isDieReason))
      yield* Effect.logError("a job could not be carried out", exit.cause)
    const end = endOf(exit)
    if (end === undefined) return
    const endedAt = yield* Clock.currentTimeMillis
    const progress = watch.progress()
    yield* changeJob(id, (before) =>
      hasJobEnded(before)
        ? undefined
        : { ...before, ...end, endedAt, ...(progress === undefined ? {} : { progress }) }
    )
  }).pipe(Effect.ensuring(lease.giveBack))

/**
 * Works on jobs until the scope closes. A job of a console that has died is taken up by another one
 * when its lease has expired.
 *
 * @param name of this console, for whoever looks at a lease.
 */
export const runJobs = Effect.fnUntraced(function* (name: string) {
  const owner = yield* Effect.sync(() => `${name} ${randomBytes(6).toString("hex")}`)
  const running = yield* FiberMap.make<string>()
  const look = Effect.gen(function* () {
    for (const { id } of (yield* readJobs).filter((job) => !hasJobEnded(job)).toReversed()) {
      if ((yield* FiberMap.size(running)) >= maxJobs) return
      if (yield* FiberMap.has(running, id)) continue
      const lease = yield* takeJob(id, owner)
      if (lease === undefined) continue
      const working = work(id, lease).pipe(
        Effect.catch((error) =>
          Effect.logWarning("a job is tried again", { job: id, why: error.message })
        )
      )
      yield* FiberMap.run(running, id, working)
    }
  })
  yield* look.pipe(
    Effect.catch((error) => Effect.logDebug("looking for jobs failed", { why: error.message })),
    Effect.andThen(Effect.sleep(lookEvery)),
    Effect.forever,
    Effect.forkScoped
  )
})
