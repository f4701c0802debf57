import type { Input } from "./calling.ts"
import type { Job } from "./generated/schemas.ts"
import { checkMs, pause } from "./machine.ts"
import { type CallOptions, checkTimes } from "./operation.ts"

/** A job that did not come to its end. */
export class JobFailed extends Error {
  override readonly name = "JobFailed"
  readonly job: Job

  constructor(job: Job) {
    super(
      job.state === "cancelled"
        ? `the ${job.kind} ${job.id} was cancelled`
        : `the ${job.kind} ${job.id} has failed: ${job.problem ?? "it does not say why"}`
    )
    this.job = job
  }
}

export interface FinishOptions extends CallOptions {
  /** Called with the job as it is, whenever it was looked at. */
  readonly onProgress?: ((job: Job) => void) | undefined
  /** Pause between two looks, ms. (Default: 1,000) */
  readonly everyMs?: number | undefined
}

/** The operations that show a job of each kind. */
const shown = {
  redelivery: "jobs.getRedelivery",
  replay: "jobs.getReplay",
  audit: "jobs.getAudit",
  retry: "retries.getRetry",
  recovery: "retries.getRecovery"
} as const satisfies Readonly<Record<Job["kind"], string>>

const usualEveryMs = 1_000

/** Refuses what is no whole job: a plan, say, or an id alone. */
const checkJob = (given: unknown): void => {
  const { id, kind }: { id?: unknown; kind?: unknown } = Object(given)
  if (typeof id !== "string" || typeof kind !== "string" || !Object.hasOwn(shown, kind))
    throw new TypeError("finish needs a job as jobs.replay, jobs.getReplay and the like return it")
}

/** Waits until a job is done, and returns it as it is then. Rejects with JobFailed where it fails. */
export const finishJob = async (
  show: (id: (typeof shown)[Job["kind"]], input: Input, options: CallOptions) => Promise<unknown>,
  begun: Job,
  { everyMs = usualEveryMs, onProgress, ...options }: FinishOptions
): Promise<Job> => {
  checkJob(begun)
  checkMs("everyMs", everyMs, 0)
  checkTimes(options)
  for (let job = begun; ; ) {
    onProgress?.(job)
    if (job.state === "done") return job
    if (job.state === "failed" || job.state === "cancelled") throw new JobFailed(job)
    await pause(everyMs, options.signal)
    const input = job.kind === "audit" ? { job: job.id } : { tenant: job.tenant, job: job.id }
    job = (await show(shown[job.kind], input, options)) as Job
  }
}
