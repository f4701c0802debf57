import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Invalid } from "../../domain/problem.ts"
import { selectionProblem } from "../../operations/dead-letters/dead-letter-selection.ts"
import { planRedelivery } from "../../operations/dead-letters/redeliver-dead-letters.ts"
import type { JobKind, JobTask } from "../../operations/jobs/job.ts"
import { addJob, cancelJob, listJobs, showJob } from "../../operations/jobs/manage-jobs.ts"
import { previewReplay } from "../../operations/replays/replay-events.ts"
import { replayProblems } from "../../operations/replays/replay-request.ts"
import { allTenants } from "../../operations/tokens/token.ts"
import { Caller } from "../access.ts"
import { withHeader, withStatus } from "../answer.ts"
import { Api } from "../definition/api.ts"
import { listing, reading } from "../failures.ts"
import { invalidRequest } from "../validation.ts"

const tenantOf = (name: string): string | undefined => (name === allTenants ? undefined : name)

/** Stores a job, and answers 202 with where it can be looked at. */
const accept = Effect.fnUntraced(function* (task: JobTask, tenant: string, path: string) {
  const { by } = yield* Caller
  const job = yield* addJob(task, tenant, by)
  yield* withStatus(202)
  yield* withHeader("location", `${path}/${job.id}`)
  return job
})

const scope = (kind: JobKind, tenant: string = allTenants) => ({ kind, tenant: tenantOf(tenant) })

/** Carries out the routes of long work. */
export const jobsHandlers = HttpApiBuilder.group(Api, "jobs", (handlers) =>
  handlers.handleAll({
    redeliver: ({ params, payload: { dryRun, endpoint, ...rest } }) =>
      reading(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const tenant = tenantOf(params.tenant)
          if (endpoint !== undefined && tenant === undefined)
            return yield* invalidRequest([
              { field: "endpoint", message: "needs a tenant in the path, and not *" }
            ])
          const problem = selectionProblem(
            endpoint === undefined || tenant === undefined
              ? rest
              : { ...rest, endpoint: { tenant, id: endpoint } },
            "send again"
          )
          if (problem !== undefined) return yield* problem
          const { all: _, ...filter } = rest
          const selection = {
            ...filter,
            // What becomes a dead letter from now on may be one that this sends.
            until: Math.min(filter.until ?? now, now),
            ...(tenant === undefined ? {} : { tenant }),
            ...(endpoint === undefined || tenant === undefined
              ? {}
              : { endpoint: { tenant, id: endpoint } })
          }
          const { by } = yield* Caller
          if (dryRun === true) return (yield* planRedelivery(selection, { by })).plan
          return yield* accept(
            { kind: "redelivery", selection },
            params.tenant,
            `/v1/tenants/${params.tenant}/redeliveries`
          )
        })
      ).pipe(
        Effect.catchTag("NotFound", ({ detail = "" }) =>
          invalidRequest([{ field: "id", message: detail }])
        )
      ),
    listRedeliveries: ({ params: { tenant } }) =>
      listing(Effect.map(listJobs(scope("redelivery", tenant)), (jobs) => ({ jobs }))),
    getRedelivery: ({ params: { job, tenant } }) =>
      reading(showJob(job, scope("redelivery", tenant))),
    cancelRedelivery: ({ params: { job, tenant } }) =>
      reading(cancelJob(job, scope("redelivery", tenant))),
    replay: ({ params: { tenant }, payload: { dryRun, endpoint, ...rest } }) =>
      reading(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const problems = replayProblems(rest, now)
          if (problems.length > 0) return yield* new Invalid({ problems })
          const { by } = yield* Caller
          const replay = {
            ...rest,
            to: { tenant, id: endpoint },
            until: Math.min(rest.until ?? now, now)
          }
          // The same problems are found now, while somebody waits for the answer.
          const plan = yield* previewReplay(replay, by)
          if (dryRun === true) return plan
          return yield* accept({ kind: "replay", replay }, tenant, `/v1/tenants/${tenant}/replays`)
        })
      ),
    listReplays: ({ params: { tenant } }) =>
      listing(Effect.map(listJobs(scope("replay", tenant)), (jobs) => ({ jobs }))),
    getReplay: ({ params: { job, tenant } }) => reading(showJob(job, scope("replay", tenant))),
    cancelReplay: ({ params: { job, tenant } }) => reading(cancelJob(job, scope("replay", tenant))),
    audit: ({ payload }) =>
      listing(accept({ kind: "audit", audit: payload ?? {} }, allTenants, "/v1/audits")),
    listAudits: () => listing(Effect.map(listJobs(scope("audit")), (jobs) => ({ jobs }))),
    getAudit: ({ params: { job } }) => reading(showJob(job, scope("audit"))),
    cancelAudit: ({ params: { job } }) => reading(cancelJob(job, scope("audit")))
  })
)
