import { Clock, Effect, Schema } from "effect"
import { Invalid, invalid } from "../../domain/problem.ts"
import { Types } from "../../domain/settings/endpoint-table.ts"
import { checkAudit } from "../audit/run-audit.ts"
import { Caller } from "../caller.ts"
import {
  conditionsOfTenant,
  DeadLetterSelection,
  selectionProblem
} from "../dead-letters/dead-letter-selection.ts"
import { planRedelivery, RedeliveryPlan } from "../dead-letters/redeliver-dead-letters.ts"
import { readingHistory } from "../history/history-readings.ts"
import { documented, notEmpty, operation, operationGroup } from "../operation.ts"
import {
  EndpointId,
  endpointOf,
  onlyOne,
  rangeProblems,
  Tenant,
  tenantOf,
  tenantPath
} from "../parameters.ts"
import {
  checkReplay,
  previewReplay,
  ReplayPlan,
  ReplayRequest,
  replayProblems
} from "../replays/replay-events.ts"
import { allTenants } from "../token.ts"
import { AuditRequest } from "./job.ts"
import { Accepted, accept, dryRun, jobsOf, jobsOfAll } from "./job-routes.ts"

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
      type: "Only those of these event types: `invoice.paid`, `invoice.*`, `>`.",
      since: "Stored then or later.",
      until: "Stored then or earlier. (Default: now)",
      id: "Only those of these numbers.",
      all: "All of them; without any other condition."
    },
    examples: [{ endpoint: "billing", status: "5xx" }],
    says: notEmpty
  }
)

const { asked: ___, to: ____, types: _____, ...replay } = ReplayRequest.fields

const Replay = documented(
  Schema.Struct({
    endpoint: EndpointId.annotateKey({ description: "The id of the endpoint." }),
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
      skipped: "Only events that were skipped because it was disabled.",
      onlyMissing: "Leave out events that it has taken or that are on their way there.",
      id: "A name: the same name continues it. (Default: made from the other fields)"
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

const redeliveries = `${tenantPath}/redeliveries` as const
const replays = `${tenantPath}/replays` as const
const audits = "/v1/audits" as const
const ofOne = { tenant: Tenant }

const redeliver = operation("redeliver", "POST", redeliveries, {
  scope: "dead:write",
  summary: "Send dead letters again, each delivery once",
  description:
    "Of several dead letters of one delivery that are selected, only the newest is sent; `superseded` counts the others.",
  params: jobsOfAll,
  payload: Redelivery,
  output: [RedeliveryPlan.annotate({ identifier: "RedeliveryPlan" }), Accepted],
  once: (started) => started,
  refusals: ["conflict"],
  within: ({ payload }) => onlyOne(payload.endpoint),
  run: ({ params, payload: { dryRun, endpoint, ...rest } }) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const tenant = tenantOf(params.tenant)
      const named = yield* endpointOf(tenant, endpoint)
      const problem = selectionProblem({ ...rest, ...named }, "send again", conditionsOfTenant)
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
  within: ({ payload }) => onlyOne(payload.endpoint),
  run: ({ params: { tenant }, payload: { dryRun, endpoint, ...rest } }) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const problems = replayProblems(rest, now)
      if (problems.length > 0) return yield* new Invalid({ problems })
      const { by } = yield* Caller
      const { since, until = now } = rest
      const replay = {
        ...rest,
        to: { tenant, id: endpoint },
        until: Math.min(until, now),
        // The same request goes on with the same replay, though its end is another moment by now.
        ...(rest.until === undefined || until > now
          ? { asked: JSON.stringify([since, rest.until]) }
          : {})
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
  "Long work: the answer is 202 with a job, whose state can be asked for until it has ended.",
  redeliver,
  ...jobsOf("redelivery", ["Redelivery", "Redeliveries"], redeliveries, "dead:write", jobsOfAll, [
    "List redeliveries, newest first",
    "Show how far a redelivery has come",
    "End a redelivery where it is"
  ]),
  startReplay,
  ...jobsOf("replay", ["Replay", "Replays"], replays, "replay:write", jobsOfAll, [
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
