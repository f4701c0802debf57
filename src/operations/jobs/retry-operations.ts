import { Clock, Effect, Schema } from "effect"
import { Invalid } from "../../domain/problem.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { Caller } from "../caller.ts"
import { readingHistory } from "../history/history-readings.ts"
import { documented, notEmpty, operation, operationGroup } from "../operation.ts"
import { EndpointId, rangeProblems, Tenant, tenantPath } from "../parameters.ts"
import { checkRecovery, previewRecovery, RecoveryPlan } from "../retries/recover-endpoint.ts"
import {
  checkRetry,
  RetriedDeliveries,
  RetrySelection,
  retryWaiting
} from "../retries/retry-waiting.ts"
import { Accepted, accept, dryRun, jobsOf, jobsOfAll } from "./job-routes.ts"

const { endpoint: _, tenant: __, ...selection } = RetrySelection.fields

const Retry = documented(
  Schema.Struct({
    endpoint: Schema.optionalKey(EndpointId).annotateKey({
      description: "The id of the endpoint."
    }),
    ...selection,
    all: Schema.optionalKey(Schema.Boolean),
    dryRun
  }),
  {
    identifier: "Retry",
    description: "Which waiting deliveries are tried now; all conditions hold at once.",
    fields: {
      endpoint: "Only those of this endpoint.",
      types: "NATS wildcards, of which one must match the event's type.",
      status: "Only those with this last status, or its class: 503, 5xx.",
      error: "Only those whose last attempt failed with an error of this class.",
      since: "Attempted last then or later.",
      until: "Attempted last then or earlier.",
      ignoreRetryAfter: "Do not wait for the end of the receiver's Retry-After. (Default: false)",
      all: "All of them; without any other condition."
    },
    examples: [{ endpoint: "billing", status: "5xx" }],
    says: notEmpty
  }
)

const Recovery = documented(
  Schema.Struct({ since: Timestamp, until: Schema.optionalKey(Timestamp), dryRun }),
  {
    identifier: "Recovery",
    description: "From when on what failed at an endpoint is sent again.",
    fields: {
      since: "Failed then or later.",
      until: "Failed then or earlier. (Default: now)"
    },
    examples: [{ since: "2026-03-04T10:30:00Z" }]
  }
)

const RetryPlan = documented(RetriedDeliveries, {
  identifier: "RetryPlan",
  description: "What would become of the deliveries that are to be tried now.",
  fields: {
    endpoints: "Endpoints that are looked at: those for which something waits.",
    moved: "Wait for their next attempt, and would be tried now.",
    inFlight: "Are being attempted, or about to be.",
    inBacklog:
      "Are in their endpoint's backlog, whatever they are, and are sent when the endpoint takes them.",
    left: "Would stay as they are.",
    skipped: "Endpoints that take nothing now, and why; at most 100 of them.",
    skippedElsewhere: "How many further ones take nothing."
  }
})

const retries = `${tenantPath}/retries` as const
const recoveries = `${tenantPath}/recoveries` as const

const retry = operation("retry", "POST", retries, {
  scope: "endpoints:write",
  summary:
    "Try now the deliveries of a tenant that wait for their next attempt, selected by a filter",
  params: { tenant: Tenant },
  payload: Retry,
  output: [RetryPlan, Accepted],
  once: (started) => started,
  refusals: ["not-found", "conflict"],
  run: ({ params: { tenant }, payload: { all = false, dryRun, ...rest } }) =>
    Effect.gen(function* () {
      const { by } = yield* Caller
      const selection = { ...rest, tenant }
      yield* checkRetry(selection, all, yield* Clock.currentTimeMillis)
      // What is not there is misspelt: nothing waits for it.
      if (rest.endpoint !== undefined) yield* getEndpoint(tenant, rest.endpoint)
      if (dryRun === true)
        return yield* readingHistory(retryWaiting(selection, { by, dryRun: true }))
      const path = `/v1/tenants/${tenant}/retries`
      return yield* accept({ kind: "retry", retry: selection }, tenant, path)
    })
})

const recover = operation("recover", "POST", `${tenantPath}/endpoints/:id/recover`, {
  scope: "dead:write",
  summary: "Send again all that failed at an endpoint since a time",
  description:
    "Deliveries that wait for their next attempt are tried now, and dead letters are sent again, each delivery once: asking twice sends nothing twice. Of several dead letters of one delivery, only the newest is sent. Events that it missed while it was disabled are for a replay (`skipped`).",
  params: { tenant: Tenant, id: EndpointId },
  payload: Recovery,
  output: [RecoveryPlan.annotate({ identifier: "RecoveryPlan" }), Accepted],
  once: (started) => started,
  refusals: ["not-found", "conflict"],
  within: ({ params }) => params.id,
  run: ({ params, payload: { dryRun, since, until } }) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const problems = rangeProblems({ since, until }, now)
      if (problems.length > 0) return yield* new Invalid({ problems })
      const { by } = yield* Caller
      yield* checkRecovery(params)
      // What fails from now on may be what this sends.
      const recovery = { endpoint: params, since, until: Math.min(until ?? now, now) }
      if (dryRun === true) return yield* readingHistory(previewRecovery(recovery, by))
      const path = `/v1/tenants/${params.tenant}/recoveries`
      return yield* accept({ kind: "recovery", recovery }, params.tenant, path)
    }).pipe(
      // Dead letters are selected by time, and never by their numbers.
      Effect.catchTag("DeadLettersNotFound", Effect.die)
    )
})

/** Operations that try or send again in bulk. */
export const retryOperations = operationGroup(
  "retries",
  "Jobs that try again, or send again, in bulk what waits or has failed.",
  retry,
  ...jobsOf("retry", ["Retry", "Retries"], retries, "endpoints:write", jobsOfAll, [
    "List bulk retries, newest first",
    "Show how far a bulk retry has come",
    "End a bulk retry where it is"
  ]),
  recover,
  ...jobsOf("recovery", ["Recovery", "Recoveries"], recoveries, "dead:write", jobsOfAll, [
    "List recoveries, newest first",
    "Show how far a recovery has come",
    "End a recovery where it is"
  ])
)
