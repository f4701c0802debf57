import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { TypeFilter } from "../../domain/type-filter.ts"
import { DeadLetterSelection } from "../../operations/dead-letters/dead-letter-selection.ts"
import { RedeliveryPlan } from "../../operations/dead-letters/redeliver-dead-letters.ts"
import { AuditRequest, JobView } from "../../operations/jobs/job.ts"
import { ReplayPlan } from "../../operations/replays/replay-events.ts"
import { ReplayRequest } from "../../operations/replays/replay-request.ts"
import { Access, Needs } from "../access.ts"
import { NotFound } from "../problems.ts"
import { EndpointId, Tenant, TenantOrAll, tenantPath } from "./common.ts"
import { documented } from "./documented.ts"

const Job = documented(JobView, {
  identifier: "Job",
  description: "Long work. It goes on with another console where its own has stopped.",
  fields: {
    tenant: "Whose it is; `*`: of all tenants.",
    by: "Who asked for it.",
    createdAt: "ms since the epoch.",
    endedAt: "ms since the epoch; absent while it has not ended.",
    progress: "How far it has come.",
    result: "What it came to, once it is done.",
    problem: "Why it failed."
  }
})

const Jobs = Schema.Struct({ jobs: Schema.Array(Job) }).annotate({ identifier: "JobList" })

const Accepted = Job.pipe(HttpApiSchema.status(202))

const jobParam = Schema.String.annotateKey({ description: "The job's id." })

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
      since: "Stored then or later, ms since the epoch.",
      until: "Stored then or earlier, ms since the epoch. (Default: now)",
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
    types: Schema.optional(Schema.NonEmptyArray(TypeFilter)),
    dryRun
  }),
  {
    identifier: "Replay",
    description: "Which events of the past are sent to an endpoint once more.",
    fields: {
      endpoint: "The endpoint that gets them.",
      event: "Only the event of this id.",
      types: "NATS wildcards, of which one must match. (Default: what the endpoint wants)",
      since: "Events stored then or later, ms since the epoch.",
      until: "Events stored then or earlier, ms since the epoch. (Default: now)",
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
    since: "Stored then or later, ms since the epoch.",
    until: "Stored then or earlier, ms since the epoch."
  }
})

const redeliveries = `${tenantPath}/redeliveries` as const
const replays = `${tenantPath}/replays` as const
const audits = "/v1/audits" as const
const ofAll = { tenant: TenantOrAll }
const ofOne = { tenant: Tenant }

const redeliver = HttpApiEndpoint.post("redeliver", redeliveries, {
  params: ofAll,
  payload: Redelivery,
  success: [RedeliveryPlan.annotate({ identifier: "RedeliveryPlan" }), Accepted]
})
  .annotate(Needs, "dead:write")
  .annotate(OpenApi.Summary, "Send dead letters again, each once")

const listRedeliveries = HttpApiEndpoint.get("listRedeliveries", redeliveries, {
  params: ofAll,
  success: Jobs
})
  .annotate(Needs, "dead:write")
  .annotate(OpenApi.Summary, "List redeliveries, newest first")

const ofJob = { success: Job, error: [NotFound] }

const getRedelivery = HttpApiEndpoint.get("getRedelivery", `${redeliveries}/:job`, {
  params: { ...ofAll, job: jobParam },
  ...ofJob
})
  .annotate(Needs, "dead:write")
  .annotate(OpenApi.Summary, "Show how far a redelivery has come")

const cancelRedelivery = HttpApiEndpoint.delete("cancelRedelivery", `${redeliveries}/:job`, {
  params: { ...ofAll, job: jobParam },
  ...ofJob
})
  .annotate(Needs, "dead:write")
  .annotate(OpenApi.Summary, "End a redelivery where it is")

const startReplay = HttpApiEndpoint.post("replay", replays, {
  params: ofOne,
  payload: Replay,
  success: [ReplayPlan.annotate({ identifier: "ReplayPlan" }), Accepted],
  error: [NotFound]
})
  .annotate(Needs, "replay:write")
  .annotate(OpenApi.Summary, "Send events of the past to an endpoint once more")

const listReplays = HttpApiEndpoint.get("listReplays", replays, { params: ofAll, success: Jobs })
  .annotate(Needs, "replay:write")
  .annotate(OpenApi.Summary, "List replays, newest first")

const getReplay = HttpApiEndpoint.get("getReplay", `${replays}/:job`, {
  params: { ...ofAll, job: jobParam },
  ...ofJob
})
  .annotate(Needs, "replay:write")
  .annotate(OpenApi.Summary, "Show how far a replay has come")

const cancelReplay = HttpApiEndpoint.delete("cancelReplay", `${replays}/:job`, {
  params: { ...ofAll, job: jobParam },
  ...ofJob
})
  .annotate(Needs, "replay:write")
  .annotate(OpenApi.Summary, "End a replay where it is")

const audit = HttpApiEndpoint.post("audit", audits, {
  payload: [Audit, Schema.Null],
  success: Accepted
})
  .annotate(Needs, "operator")
  .annotate(OpenApi.Summary, "Check that every event reached every endpoint it was for")

const listAudits = HttpApiEndpoint.get("listAudits", audits, { success: Jobs })
  .annotate(Needs, "operator")
  .annotate(OpenApi.Summary, "List audits, newest first")

const getAudit = HttpApiEndpoint.get("getAudit", `${audits}/:job`, {
  params: { job: jobParam },
  ...ofJob
})
  .annotate(Needs, "operator")
  .annotate(OpenApi.Summary, "Show how far an audit has come, or what it found")

const cancelAudit = HttpApiEndpoint.delete("cancelAudit", `${audits}/:job`, {
  params: { job: jobParam },
  ...ofJob
})
  .annotate(Needs, "operator")
  .annotate(OpenApi.Summary, "End an audit")

/** Routes of long work. */
export class JobsGroup extends HttpApiGroup.make("jobs")
  .add(redeliver, listRedeliveries, getRedelivery, cancelRedelivery)
  .add(startReplay, listReplays, getReplay, cancelReplay)
  .add(audit, listAudits, getAudit, cancelAudit)
  .middleware(Access)
  .annotate(
    OpenApi.Description,
    "Long work: it is answered with 202 and a job, which is to be looked at until it has ended."
  ) {}
