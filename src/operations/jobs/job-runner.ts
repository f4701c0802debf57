import { randomBytes } from "node:crypto"
import { Cause, Clock, Effect, Exit, FiberMap } from "effect"
import { BrokerError } from "../../broker/broker-error.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { PublishError } from "../../broker/publisher.ts"
import { keepLease, type Lease } from "../../cluster/lease.ts"
import type { JobRecord } from "./job.ts"
import { givenUp, hasJobEnded, takenUp } from "./job.ts"
import { changeJob, readJobs, takeJob } from "./job-store.ts"
import type { JobWatch } from "./job-work.ts"
import { carryOutJob } from "./job-work.ts"

/** Jobs that one console works on at the same time. */
const maxJobs = 4
/** Pause between looks for jobs that nobody works on. */
const lookEvery = "1 second"
/** Time to store that a job is given up, while a console stops. */
const giveUpWithin = "2 seconds"

/** Why a job's work is broken off. */
type Interruption = "cancelled" | "lost"

/** Stores how far a job has come; says when it is to be broken off. */
const storeStep = Effect.fnUntraced(function* (id: string, name: string, watch: JobWatch) {
  const step = watch.step()
  const record = yield* changeJob(id, (before) => {
    const isSame = JSON.stringify({ ...before, ...step }) === JSON.stringify(before)
    return isSame || before.console !== name || hasJobEnded(before)
      ? undefined
      : { ...before, ...step }
  })
  if (record === undefined || record.isCancelled === true) return "cancelled" as const
  // What another one has stored since is newer.
  return record.console === name ? undefined : ("lost" as const)
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
const work = (id: string, name: string, lease: Lease) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const record = yield* changeJob(id, (before) =>
      hasJobEnded(before) ? undefined : takenUp(before, name, now)
    )
    if (record === undefined || hasJobEnded(record)) return
    const watch: JobWatch = { step: () => ({}) }
    const exit = yield* Effect.exit(
      Effect.raceFirst(carryOutJob(record, watch), keepLease(lease, storeStep(id, name, watch)))
    )
    if (Exit.isFailure(exit) && exit.cause.reasons.some(Cause.isDieReason))
      yield* Effect.logError("a job could not be carried out", exit.cause)
    const end = endOf(exit)
    if (end === undefined) return
    const endedAt = yield* Clock.currentTimeMillis
    yield* changeJob(id, (before) =>
      hasJobEnded(before) || before.console !== name
        ? undefined
        : { ...before, ...watch.step(), ...end, endedAt }
    )
  }).pipe(
    // A console that is stopped, or cut off for a while, has not ended in the middle of it.
    Effect.ensuring(
      changeJob(id, (job) => givenUp(job, name)).pipe(
        Effect.timeoutOption(giveUpWithin),
        Effect.ignore
      )
    ),
    Effect.ensuring(lease.giveBack)
  )

/**
 * Works on jobs until the scope closes. A job of a console that has died is taken up by another one
 * when its lease has expired.
 *
 * @param name of this console, for whoever looks at a lease.
 */
export const runJobs = Effect.fnUntraced(function* (name: string) {
  const owner = yield* Effect.sync(() => `${name} ${randomBytes(6).toString("hex")}`)
  const running = yield* FiberMap.make<string>()
  const begin = Effect.fnUntraced(function* ({ endedConsoles = [], id }: JobRecord) {
    if (yield* FiberMap.has(running, id)) return
    // It was cut off, and not ended, while another one took the job over.
    if (endedConsoles.includes(owner)) yield* changeJob(id, (job) => givenUp(job, owner))
    if ((yield* FiberMap.size(running)) >= maxJobs) return
    const lease = yield* takeJob(id, owner)
    if (lease === undefined) return
    const working = work(id, owner, lease).pipe(
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterruptsOnly(cause),
        (cause) => Effect.logWarning("a job is tried again", { job: id }, cause)
      )
    )
    yield* FiberMap.run(running, id, working)
  })
  const look = Effect.gen(function* () {
    for (const job of (yield* readJobs).filter((job) => !hasJobEnded(job)).toReversed())
      yield* begin(job)
  })
  yield* Effect.forkScoped(
    keepGoing("look for jobs", Effect.andThen(look, Effect.sleep(lookEvery)), lookEvery)
  )
})
