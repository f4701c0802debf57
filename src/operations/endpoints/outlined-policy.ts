import { Effect, Schema } from "effect"
import { SpanMs } from "../../domain/duration.ts"
import type { EndpointName } from "../../domain/endpoint.ts"
import { RetryPolicy } from "../../domain/retry-policy.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { policiesOf, TypeChoice } from "../../policy/endpoint-policies.ts"
import { outlineOf } from "../../policy/retry-outline.ts"
import { statusLadder, statusLimits } from "../../policy/status-limit.ts"
import { documented, operation } from "../operation.ts"
import { EndpointId, Tenant, tenantPath } from "../parameters.ts"
import { Contradiction } from "../refusals.ts"

const Wait = documented(
  Schema.Struct({
    attempt: Schema.Int,
    least: SpanMs,
    most: SpanMs,
    earliest: SpanMs,
    latest: SpanMs,
    mayBeCut: Schema.Boolean
  }),
  {
    identifier: "OutlinedWait",
    description: "A wait before an attempt.",
    fields: {
      attempt: "The number of the attempt that follows.",
      least: "The shortest wait before it.",
      most: "The longest wait before it.",
      earliest: "How long after the beginning of the round it comes at the earliest.",
      latest: "How long after the beginning of the round it comes at the latest.",
      mayBeCut: "Whether the end of the window may prevent it."
    }
  }
)

const End = documented(Schema.Struct({ earliest: SpanMs, latest: SpanMs }), {
  identifier: "OutlinedEnd",
  description: "When the last attempt fails.",
  fields: {
    earliest: "How long after the beginning of the round at the earliest.",
    latest: "How long after the beginning of the round at the latest."
  }
})

const StatusLimits = documented(
  Schema.Struct({
    status: Schema.String,
    attempts: Schema.Int,
    window: SpanMs,
    waits: Schema.Array(SpanMs)
  }),
  {
    identifier: "OutlinedStatus",
    description: "A status with limits of its own.",
    fields: {
      status: "The status, or its class.",
      attempts: "The most answers with it.",
      window: "How long it is tried.",
      waits: "The nominal waits before each attempt."
    }
  }
)

/**
 * What a retry policy makes of a delivery that always fails. Lengths of time are ms in memory, and
 * texts where they are shown.
 */
export const OutlinedPolicy = documented(
  Schema.Struct({
    name: Schema.String,
    types: Schema.optionalKey(Schema.String),
    policy: RetryPolicy,
    waits: Schema.Array(Wait),
    maxAttempts: Schema.Int,
    window: SpanMs,
    givesUp: End,
    endedBy: Schema.Literals(["attempts", "either", "window"]),
    statuses: Schema.Array(StatusLimits)
  }),
  {
    identifier: "OutlinedPolicy",
    description: "What a retry policy makes of a delivery that always fails.",
    fields: {
      name: "The name of a preset, or `a policy of its own`.",
      types: "The event types that it holds for; absent for all that have no other.",
      waits: "Each wait between its shortest and longest; `attempt` follows it.",
      maxAttempts: "The most attempts.",
      window: "How long a round may last.",
      givesUp: "When the last attempt fails at the earliest and at the latest.",
      endedBy: "What ends the round: its attempts, its window, or either.",
      statuses: "Statuses with limits of their own."
    }
  }
)
export type OutlinedPolicy = typeof OutlinedPolicy.Type

export const encodeOutline = Schema.encodeSync(OutlinedPolicy)

/** Returns the outline of a policy, with what its name and its event types are. */
export const outlined = (name: string, policy: RetryPolicy, types?: string): OutlinedPolicy => ({
  name,
  ...(types === undefined ? {} : { types }),
  policy,
  ...outlineOf(policy),
  statuses: [...statusLimits(policy)].map(([status, limit]) => ({
    status,
    attempts: limit.attempts,
    window: limit.windowMs,
    waits: statusLadder(policy, limit)
  }))
})

const nameOf = (retry: string | RetryPolicy | undefined): string =>
  typeof retry === "string" ? retry : "a policy of its own"

/**
 * Returns the outlines of an endpoint's retry policies, that for all types first.
 *
 * @param type only the policy of this event type.
 */
export const outlineEndpoint = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  type?: string
) {
  const { endpoint } = yield* getEndpoint(tenant, id)
  const [first, ...others] = yield* Effect.fromResult(policiesOf(endpoint))
  const byFilter = others.map((one) => [one.types ?? "", one] as const)
  const policies =
    type === undefined ? [first, ...others] : [new TypeChoice(byFilter, first).for(type)]
  return policies.map(({ policy, types }) =>
    outlined(
      nameOf(types === undefined ? endpoint.retry : endpoint.retryFor?.[types]),
      policy,
      types
    )
  )
})

/** Shows what retries of an endpoint come to. */
export const retryPolicies = operation(
  "retryPolicies",
  "GET",
  `${tenantPath}/endpoints/:id/retry-policies`,
  {
    scope: "endpoints:read",
    summary: "Show the waits of an endpoint's retry policies, with what jitter makes of them",
    params: { tenant: Tenant, id: EndpointId },
    query: {
      type: Schema.optionalKey(Schema.String).annotateKey({
        description: "Only the policy that holds for this event type."
      })
    },
    output: Schema.Struct({
      policies: Schema.Array(OutlinedPolicy).annotateKey({ description: "The policies." })
    }).annotate({
      identifier: "RetryPolicies"
    }),
    refusals: ["not-found", "conflict"],
    within: ({ params }) => params.id,
    run: ({ params, query: { type } }) =>
      outlineEndpoint(params, type).pipe(
        Effect.map((policies) => ({ policies })),
        // Another version has stored it.
        Effect.catchTag("UnknownPreset", ({ message }) =>
          Effect.fail(new Contradiction({ message }))
        )
      )
  }
)
