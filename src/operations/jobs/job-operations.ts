import { Clock, Effect, Schema } from "effect"
import { Invalid, invalid } from "../../domain/problem.ts"
import { Types } from "../../domain/settings/endpoint-table.ts"
import { checkAudit } from "../audit/check-audit.ts"
import { asCaller, Caller } from "../caller.ts"
import { makeCursor } from "../cursor.ts"
import { DeadLetterSelection, selectionProblem } from "../dead-letters/dead-letter-selection.ts"
import { planRedelivery, RedeliveryPlan } from "../dead-letters/redeliver-dead-letters.ts"
import { documented } from "../documented.ts"
import { readingHistory } from "../history/history-readings.ts"
import { operation, operationGroup, Replied, withStatus } from "../operation.ts"
import {
  defaultLimit,
  EndpointId,
  endpointOf,
  next,
  PathText,
  pageQuery,
  Tenant,
  TenantOrAll,
  tenantOf,
  tenantPath
} from "../parameters.ts"
import { checkReplay, previewReplay, ReplayPlan } from "../replays/replay-events.ts"
import { ReplayRequest, replayProblems } from "../replays/replay-request.ts"
import { rangeProblems } from "../time-range.ts"
import type { TokenScope } from "../tokens/token.ts"
import { allTenants } from "../tokens/token.ts"
import type { JobKind, JobTask } from "./job.ts"
import { AuditRequest, JobView } from "./job.ts"
import { addJob, cancelJob, JobPosition, pageJobs, showJob } from "./manage-jobs.ts"

const Job = documented(JobView, {
  identifier: "Job",
  description: "Long work. It goes on with another console where its own has stopped.",
  fields: {
    tenant: "Whose it is; `*`: of all tenants.",
    by: "Who asked for it.",
    createdAt: "When it was asked for.",
    endedAt: "When it ended; absent while it has not.",
    progress: "How far it has come.",
    result: "What it came to, once it is done.",
    problem: "Why it failed.",
    takeovers: "How many consoles have ended in the middle of it. A job that ended three fails."
  }
})

const Jobs = Schema.Struct({ jobs: Schema.Array(Job), next }).annotate({ identifier: "JobList" })

const Accepted = withStatus(Job, 202)

const jobParam = PathText.annotateKey({
  description: "The job's id.",
  examples: ["job-mwtsj1s1-1a33eccd"]
})

const dryRun = Schema.optionalKey(Schema.Boolean).annotateKey({
  description: "Say what would be done, and do nothing. (Default: false)"
})

const { endpoint: _, tenant: __, ...selection } = DeadLetterSelection.fields

const Redelivery = documented(
  Schema.Struct({ ...selection, endpoint: Schema.optional(EndpointId), dryRun }),
  {
    identifier: "Redelivery",
    description: "Which dead letters are sent again; all conditions hold at once.",
    fields: {
      endpoint: "Only those of this endpoint.",
      reason: "Only those that ended for this reason.",
      status: "Only those with this last status, or its class: 503, 5xx.",
      since: "Stored then or later.",
      until: "Stored then or earlier. (Default: now)",
      id: "Only those of these numbers.",
      all: "All of them; without any other condition."
    },
    examples: [{ endpoint: "billing", status: "5xx" }]
  }
)

const { asked: ___, to: ____, types: _____, ...replay } = ReplayRequest.fields

const Replay = documented(
  Schema.Struct({
    endpoint: EndpointId,
    ...replay,
    types: Schema.optional(Types),
    dryRun
  }),
  {
    identifier: "Replay",
    description: "Which events of the past are sent to an endpoint once more.",
    fields: {
      endpoint: "The endpoint that gets them.",
      event: "Only the event of this id.",
      types: "NATS wildcards, of which one must match. (Default: what the endpoint wants)",
      since: "Events stored then or later.",
      until: "Events stored then or earlier. (Default: now)",
      skipped: "Only what it was not sent because it was disabled then.",
      onlyMissing: "Not what it has taken, nor what is on its way there.",
      id: "A name: the same again goes on with it. (Default: made from the other fields)"
    },
    examples: [{ endpoint: "billing", onlyMissing: true }]
  }
)

const Audit = documented(AuditRequest, {
  identifier: "Audit",
  description: "Which events are audited.",
  fields: {
    tenant: "Only those of this tenant.",
    since: "Stored then or later.",
    until: "Stored then or earlier."
  }
})

/** Stores a job, and answers 202 with where it can be looked at. */
const accept = (task: JobTask, tenant: string, path: string) =>
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
const jobsOf = (
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
      run: ({ params: { job, tenant } }) => showJob(job, inScope(kind, tenant))
    }),
    operation(`cancel${one}`, "DELETE", `${path}/:job`, {
      ...{ ...described, params: ofJob, summary: summaries[2] },
      run: ({ params: { job, tenant } }) => cancelJob(job, inScope(kind, tenant))
    })
  ] as const
}

const redeliveries = `${tenantPath}/redeliveries` as const
const replays = `${tenantPath}/replays` as const
const audits = "/v1/audits" as const
const ofAll = { tenant: TenantOrAll }
const ofOne = { tenant: Tenant }

const redeliver = operation("redeliver", "POST", redeliveries, {
  scope: "dead:write",
  summary: "Send dead letters again, each once",
  params: ofAll,
  payload: Redelivery,
  output: [RedeliveryPlan.annotate({ identifier: "RedeliveryPlan" }), Accepted],
  once: (started) => started,
  refusals: ["conflict"],
  run: ({ params, payload: { dryRun, endpoint, ...rest } }) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const tenant = tenantOf(params.tenant)
      const named = yield* endpointOf(tenant, endpoint)
      const problem = selectionProblem({ ...rest, ...named }, "send again")
      if (problem !== undefined) return yield* problem
      const problems = rangeProblems(rest, now)
      if (problems.length > 0) return yield* new Invalid({ problems })
      const { all: _, ...filter } = rest
      const selection = {
        ...filter,
        // What becomes a dead letter from now on may be one that this sends.
        until: Math.min(filter.until ?? now, now),
        ...(tenant === undefined ? {} : { tenant }),
        ...named
      }
      const { by } = yield* Caller
      if (dryRun === true) return (yield* readingHistory(planRedelivery(selection, { by }))).plan
      return yield* accept(
        { kind: "redelivery", selection },
        params.tenant,
        `/v1/tenants/${params.tenant}/redeliveries`
      )
    }).pipe(
      Effect.catchTag("DeadLettersNotFound", ({ message }) => Effect.fail(invalid("id", message)))
    )
})

const startReplay = operation("replay", "POST", replays, {
  scope: "replay:write",
  summary: "Send events of the past to an endpoint once more",
  params: ofOne,
  payload: Replay,
  output: [ReplayPlan.annotate({ identifier: "ReplayPlan" }), Accepted],
  once: (started) => started,
  refusals: ["not-found", "conflict"],
  run: ({ params: { tenant }, payload: { dryRun, endpoint, ...rest } }) =>
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
      if (dryRun === true) return yield* readingHistory(previewReplay(replay, by))
      // Which events it sends takes long to find: the job does it.
      yield* checkReplay(replay, by)
      return yield* accept({ kind: "replay", replay }, tenant, `/v1/tenants/${tenant}/replays`)
    })
})

const audit = operation("audit", "POST", audits, {
  scope: "operator",
  summary: "Check that every event reached every endpoint it was for",
  payload: [Audit, Schema.Null],
  output: Accepted,
  once: (started) => started,
  refusals: ["conflict"],
  run: ({ payload }) =>
    Effect.gen(function* () {
      const asked = payload ?? {}
      yield* checkAudit(asked)
      return yield* accept({ kind: "audit", audit: asked }, allTenants, "/v1/audits")
    })
})

/** Operations that start and show long work. */
export const jobOperations = operationGroup(
  "jobs",
  "Long work: it is answered with 202 and a job, which is to be looked at until it has ended.",
  redeliver,
  ...jobsOf("redelivery", ["Redelivery", "Redeliveries"], redeliveries, "dead:write", ofAll, [
    "List redeliveries, newest first",
    "Show how far a redelivery has come",
    "End a redelivery where it is"
  ]),
  startReplay,
  ...jobsOf("replay", ["Replay", "Replays"], replays, "replay:write", ofAll, [
    "List replays, newest first",
    "Show how far a replay has come",
    "End a replay where it is"
  ]),
  audit,
  ...jobsOf("audit", ["Audit", "Audits"], audits, "operator", {}, [
    "List audits, newest first",
    "Show how far an audit has come, or what it found",
    "End an audit"
  ])
)
