import { Effect, Schema } from "effect"
import { asCaller } from "../caller.ts"
import { documented, operation, Replied, withStatus } from "../operation.ts"
import {
  defaultLimit,
  makeCursor,
  next,
  onlyOne,
  PathText,
  pageQuery,
  TenantOrAll,
  tenantOf
} from "../parameters.ts"
import type { TokenScope } from "../token.ts"
import type { JobKind, JobTask } from "./job.ts"
import { JobView } from "./job.ts"
import { addJob, cancelJob, JobPosition, pageJobs, showJob } from "./manage-jobs.ts"

const Job = documented(JobView, {
  identifier: "Job",
  description: "Long work. If its console stops, another one continues it.",
  fields: {
    tenant: "Whose it is; `*`: of all tenants.",
    by: "Who asked for it.",
    createdAt: "When it was asked for.",
    endedAt: "When it ended; absent while it has not.",
    progress: "How far it has come.",
    result: "Its result, once it is done.",
    problem: "Why it failed.",
    asked:
      "What was asked for: the fields of the request, with the times that it had by default. Of more than 20 `id`, the first ones, and in `ids` their number.",
    takeovers: "How many consoles have ended in the middle of it. A job that ended three fails."
  }
})

const Jobs = Schema.Struct({
  jobs: Schema.Array(Job).annotateKey({ description: "The jobs." }),
  next
}).annotate({ identifier: "JobList" })

/** The answer with a job that was made. */
export const Accepted = withStatus(Job, 202)

const jobParam = PathText.annotateKey({
  description: "The job's id.",
  examples: ["job-mwtsj1s1-1a33eccd"]
})

/** The field that asks for the plan only. */
export const dryRun = Schema.optionalKey(Schema.Boolean).annotateKey({
  description: "Say what would be done, and do nothing. (Default: false)"
})

/** The tenant in the path of jobs; that of all, for operators. */
export const jobsOfAll = { tenant: TenantOrAll }

/** Stores a job, and answers 202 with where it can be looked at. */
export const accept = (task: JobTask, tenant: string, path: string) =>
  asCaller((by) =>
    Effect.map(
      addJob(task, tenant, by),
      (job) => new Replied({ output: job, status: 202, location: `${path}/${job.id}` })
    )
  )

/** @param tenant the parameter of a path; undefined in one that has none. */
const inScope = (kind: JobKind, tenant: unknown) => ({
  kind,
  tenant: typeof tenant === "string" ? tenantOf(tenant) : undefined
})

/** The operations on what was started: they list the jobs of a kind, show one, and end one. */
export const jobsOf = (
  kind: JobKind,
  [one, several]: readonly [one: string, several: string],
  path: `/${string}`,
  scope: TokenScope,
  params: { readonly tenant?: typeof TenantOrAll },
  summaries: readonly [list: string, show: string, cancel: string]
) => {
  const described = { scope, output: Job, refusals: ["not-found"] } as const
  const ofJob = { ...params, job: jobParam }
  const pages = makeCursor(`jobs-${kind}`, JobPosition)
  return [
    operation(`list${several}`, "GET", path, {
      ...{ scope, params, query: pageQuery, output: Jobs, summary: summaries[0] },
      run: ({ params: { tenant }, query: { cursor, limit = defaultLimit } }) =>
        Effect.gen(function* () {
          const after = yield* pages.read(cursor)
          const { jobs, next } = yield* pageJobs(inScope(kind, tenant), after, limit)
          return { jobs, ...pages.next(next) }
        })
    }),
    operation(`get${one}`, "GET", `${path}/:job`, {
      ...{ ...described, params: ofJob, summary: summaries[1] },
      showsWithin: (shown) => onlyOne(shown.asked.endpoint),
      run: ({ params: { job, tenant } }) => showJob(job, inScope(kind, tenant))
    }),
    operation(`cancel${one}`, "DELETE", `${path}/:job`, {
      ...{ ...described, params: ofJob, summary: summaries[2] },
      run: ({ params: { job, tenant } }) => cancelJob(job, inScope(kind, tenant))
    })
  ] as const
}
