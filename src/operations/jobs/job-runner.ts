import { randomBytes } from "node:crypto"
import {
  Cause,
  Clock,
  Effect,
  Exit,
  FiberMap,
  Option,
  PartitionedSemaphore,
  Scheduler
} from "effect"
import { Broker } from "../../broker/broker.ts"
import { BrokerError } from "../../broker/broker-error.ts"
import { followBucket } from "../../broker/bucket-follow.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { isTooLarge, PublishError } from "../../broker/publication.ts"
import { CommandFailed } from "../../cluster/command.ts"
import { keepLease, type WorkLease } from "../../cluster/work-lease.ts"
import { Turns } from "../../rounds/turns.ts"
import { timers } from "../../time/timers.ts"
import { AuditFailed } from "./audit-work.ts"
import type { JobRecord } from "./job.ts"
import { allDone, givenUp, hasJobEnded, takenUp, triedLater } from "./job.ts"
import { hasPlace, type JobCounts, nextJobs, type OpenJob, type Place } from "./job-queue.ts"
import { changeJob, OpenJobs, takeJob } from "./job-store.ts"
import { JobWatch, runJob } from "./job-work.ts"

/**
 * Selections and endpoints that are sent to at the same time, of all jobs of one console: more would
 * keep it from answering requests.
 */
const maxTurns = 4
/** Pause between looks for jobs that nobody works on. */
const lookEvery = "1 second"
/** How long the watch of jobs may be behind, ms. */
const lagMs = 1_000
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
  if (record === undefined || record.state === "cancelled") return "cancelled" as const
  // What another one has stored since is newer.
  return record.console === name ? undefined : ("lost" as const)
})

/** Failures after which the same work may succeed. */
const mayPass = (error: unknown): boolean =>
  error instanceof PublishError ||
  error instanceof CommandFailed ||
  (error instanceof AuditFailed && error.mayPass) ||
  (error instanceof BrokerError && !error.isSenseless)

type Result = Exit.Exit<Record<string, unknown> | Interruption, unknown>

/** What has become of work whose result cannot be stored: it would be done anew without end. */
const resultTooLarge: Result = Exit.fail(
  new Error(
    "what it did is done, but its result is larger than the broker's messages may be (max_payload), so that it is lost"
  )
)

/** Returns a job after its work has come to an end; undefined if that is for another one to say. */
const afterWork = (job: JobRecord, exit: Result, now: number): JobRecord | undefined => {
  if (Exit.isSuccess(exit))
    return typeof exit.value === "string" ? undefined : allDone(job, exit.value, now)
  const { cause } = exit
  if (Cause.hasInterruptsOnly(cause)) return undefined
  const error = cause.reasons.find(Cause.isFailReason)?.error
  const problem = error instanceof Error ? error.message : "a defect: see the log of the console"
  if (mayPass(error)) return triedLater(job, problem, now)
  const { console: _, failures: __, ...rest } = job
  return { ...rest, endedAt: now, state: "failed", problem }
}

/** Logs what has become of a job after it was worked on. */
const logEnd = ({ failures, id, problem, progress, state }: JobRecord, exit: Result) => {
  const about = { job: id, ...progress, ...(problem === undefined ? {} : { problem }) }
  if (Exit.isFailure(exit) && exit.cause.reasons.some(Cause.isDieReason))
    return Effect.logError("a job could not be carried out", about, exit.cause)
  if (state === "failed") return Effect.logWarning("a job has failed", about)
  if (state === "waiting" && failures !== undefined && problem !== undefined)
    return Effect.logWarning("a job is tried again", { ...about, failures: failures.count })
  return state === "running" || state === "waiting"
    ? Effect.logInfo("a job is left to another console, or to a later turn", about)
    : Effect.logInfo(`a job is ${state}`, about)
}

/** Works on a job whose lease is held. */
const work = Effect.fnUntraced(function* (
  id: string,
  name: string,
  lease: WorkLease,
  watch: JobWatch
) {
  const now = yield* Clock.currentTimeMillis
  const before = yield* changeJob(id, (job) =>
    hasJobEnded(job) ? undefined : takenUp(job, name, now)
  )
  if (before === undefined) return
  if (hasJobEnded(before)) {
    // Its consoles have ended, so that none of them could say so.
    if (before.endedAt === now) yield* logEnd(before, Exit.succeed("lost"))
    return
  }
  const { by, task, tenant } = before
  yield* Effect.logInfo("a job is worked on", { job: id, kind: task.kind, tenant, by })
  const store = storeStep(id, name, watch)
  const exit: Result = yield* Effect.exit(
    Effect.raceFirst(runJob(before, watch, store), keepLease(lease, store))
  )
  const endedAt = yield* Clock.currentTimeMillis
  const end = (exit: Result) =>
    changeJob(id, (job) => {
      if (job.console !== name) return undefined
      const step = { ...job, ...watch.step() }
      if (!hasJobEnded(job)) return afterWork(step, exit, endedAt)
      // It was cancelled: what it has done until it noticed remains.
      const { console: _, ...ended } = step
      return ended
    }).pipe(Effect.tap((after) => (after === undefined ? Effect.void : logEnd(after, exit))))
  yield* Effect.catchIf(end(exit), isTooLarge, () => end(resultTooLarge))
})

/**
 * Works on jobs until the scope closes: on those of all tenants in turn. A job of a console that has
 * died is taken up by another one when its lease has expired.
 *
 * @param name of this console, for whoever looks at a lease.
 * @param schedulerOf returns what schedules the work for a tenant. (Default: as the caller's)
 * @returns what counts the jobs of the installation.
 */
export const runJobs = Effect.fnUntraced(function* (
  name: string,
  schedulerOf?: (tenant: string) => Scheduler.Scheduler
) {
  const { names } = yield* Broker
  const owner = yield* Effect.sync(() => `${name} ${randomBytes(6).toString("hex")}`)
  const running = yield* FiberMap.make<string>()
  const places = new Map<string, Omit<Place, "isHeld"> & { readonly watch: JobWatch }>()
  const turns = yield* PartitionedSemaphore.make<string>({ permits: maxTurns })
  const open = yield* followBucket({ bucket: names.buckets.jobs, lagMs }, () => new OpenJobs())

  const turnsOf = (tenant: string) => ({
    take: PartitionedSemaphore.take(turns, tenant, 1),
    giveBack: Effect.asVoid(PartitionedSemaphore.release(turns, 1))
  })
  /** @param waitsSince see `givenUp`. */
  const giveUp = (id: string, waitsSince?: number) =>
    changeJob(id, (job) => {
      const step = job.console === owner ? places.get(id)?.watch.step() : undefined
      return givenUp({ ...job, ...step }, owner, waitsSince)
    })

  const begin = Effect.fnUntraced(function* ({ endedConsoles, id, kind, tenant }: OpenJob) {
    // It was cut off, and not ended, while another one took the job over.
    if (endedConsoles.includes(owner)) yield* giveUp(id)
    const lease = yield* takeJob(id, owner)
    if (lease === undefined) return
    const watch = new JobWatch()
    places.set(id, { id, tenant, kind, watch, takenAt: timers.monotonicMs() })
    const scheduler = schedulerOf?.(tenant) ?? (yield* Scheduler.Scheduler)
    const working = work(id, owner, lease, watch).pipe(
      Effect.provideService(Turns, turnsOf(tenant)),
      Effect.provideService(Scheduler.Scheduler, scheduler),
      // A console that is stopped, or cut off for a while, has not ended in the middle of it.
      Effect.ensuring(giveUp(id).pipe(Effect.timeoutOption(giveUpWithin), Effect.ignore)),
      Effect.ensuring(lease.giveBack),
      Effect.ensuring(Effect.sync(() => places.delete(id))),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterruptsOnly(cause),
        (cause) => Effect.logWarning("a job is tried again", { job: id }, cause)
      )
    )
    yield* FiberMap.run(running, id, working)
  })

  const placesNow = (): ReadonlyArray<Place> =>
    [...places.values()].map(({ watch, ...place }) => ({ ...place, isHeld: watch.isHeld() }))
  const look = Effect.gen(function* () {
    const now = { wallMs: yield* Clock.currentTimeMillis, monotonicMs: timers.monotonicMs() }
    const next = nextJobs(open().all(), placesNow(), now)
    for (const job of next.take) if (hasPlace(job, placesNow())) yield* begin(job)
    for (const id of next.giveUp) {
      yield* giveUp(id, now.wallMs)
      // Not awaited: a round in the middle may take a while.
      Option.map(FiberMap.getUnsafe(running, id), (fiber) => fiber.interruptUnsafe())
    }
  })
  yield* Effect.forkScoped(
    keepGoing("look for jobs", Effect.andThen(look, Effect.sleep(lookEvery)), lookEvery)
  )
  return (): JobCounts => {
    const all = open().all()
    const running = all.filter(({ console }) => console !== undefined).length
    return { running, waiting: all.length - running }
  }
})
