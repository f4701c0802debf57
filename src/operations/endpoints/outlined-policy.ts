import { Effect, Schema } from "effect"
import type { EndpointName } from "../../domain/endpoint.ts"
import { RetryPolicy } from "../../domain/retry-policy.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { policiesOf, TypeChoice } from "../../policy/endpoint-policies.ts"
import { outlineOf } from "../../policy/retry-outline.ts"
import { statusLadder, statusLimits } from "../../policy/status-limit.ts"
import { documented, operation } from "../operation.ts"
import { EndpointId, Tenant, tenantPath } from "../parameters.ts"
import { Contradiction } from "../refusals.ts"

const Wait = Schema.Struct({
  attempt: Schema.Int.annotateKey({ description: "The number of the attempt that follows." }),
  least: Schema.Number.annotateKey({ description: "The shortest wait before it, ms." }),
  most: Schema.Number.annotateKey({ description: "The longest wait before it, ms." }),
  earliest: Schema.Number.annotateKey({ description: "The earliest, ms after the round began." }),
  latest: Schema.Number.annotateKey({ description: "The latest, ms after the round began." }),
  mayBeCut: Schema.Boolean.annotateKey({
    description: "Whether the end of the window may prevent it."
  })
})

/** What a retry policy makes of a delivery that always fails. Times in ms. */
export const OutlinedPolicy = Schema.Struct({
  name: Schema.String.annotateKey({
    description: "The name of a preset, or `a policy of its own`."
  }),
  types: Schema.optionalKey(Schema.String).annotateKey({
    description: "The event types that it holds for; absent for all that have no other."
  }),
  policy: RetryPolicy.annotateKey({ description: "The policy." }),
  waits: Schema.Array(Wait).annotateKey({ description: "The waits before each attempt." }),
  maxAttempts: Schema.Int.annotateKey({ description: "The most attempts." }),
  window: Schema.Number.annotateKey({ description: "How long it is tried, ms." }),
  givesUp: Schema.Struct({
    earliest: Schema.Number.annotateKey({ description: "The earliest, ms after the round began." }),
    latest: Schema.Number.annotateKey({ description: "The latest, ms after the round began." })
  }).annotateKey({ description: "When it is given up." }),
  endedBy: Schema.Literals(["attempts", "either", "window"]).annotateKey({
    description: "Which limit ends it."
  }),
  /** Statuses with limits of their own, and their nominal waits. */
  statuses: Schema.Array(
    Schema.Struct({
      status: Schema.String.annotateKey({ description: "The status, or its class." }),
      attempts: Schema.Int.annotateKey({ description: "The most answers with it." }),
      window: Schema.Number.annotateKey({ description: "How long it is tried, ms." }),
      waits: Schema.Array(Schema.Number).annotateKey({
        description: "The waits before each attempt."
      })
    })
  ).annotateKey({ description: "Statuses with limits of their own, and their nominal waits." })
})
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

/** The outline of a policy, as the API's document has it. */
export const OutlineView = documented(OutlinedPolicy, {
  identifier: "OutlinedPolicy",
  description: "What a retry policy makes of a delivery that always fails. Times in ms.",
  fields: {
    name: "The name of a preset, or `a policy of its own`.",
    types: "The event types that it holds for; absent for all that have no other.",
    waits: "Each wait between its shortest and longest; `attempt` follows it.",
    window: "How long a round may last.",
    givesUp: "When the last attempt fails at the earliest and at the latest.",
    endedBy: "What ends the round: its attempts, its window, or either.",
    statuses: "Statuses with limits of their own."
  }
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
      policies: Schema.Array(OutlineView).annotateKey({ description: "The policies." })
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
