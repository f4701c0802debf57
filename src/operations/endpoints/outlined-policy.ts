import { Effect, Schema } from "effect"
import { RetryPolicy } from "../../domain/retry-policy.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { policiesOf } from "../../policy/endpoint-policies.ts"
import { outlineOf } from "../../policy/retry-outline.ts"
import { statusLadder, statusLimits } from "../../policy/status-limit.ts"
import type { EndpointName } from "./endpoint-settings.ts"

const Wait = Schema.Struct({
  attempt: Schema.Int,
  least: Schema.Number,
  most: Schema.Number,
  earliest: Schema.Number,
  latest: Schema.Number,
  mayBeCut: Schema.Boolean
})

/** What a retry policy makes of a delivery that always fails. Times in ms. */
export const OutlinedPolicy = Schema.Struct({
  /** The name of a preset, or `a policy of its own`. */
  name: Schema.String,
  /** The event types that it holds for; absent for all that have no other. */
  types: Schema.optionalKey(Schema.String),
  policy: Schema.toEncoded(RetryPolicy),
  waits: Schema.Array(Wait),
  maxAttempts: Schema.Int,
  window: Schema.Number,
  givesUp: Schema.Struct({ earliest: Schema.Number, latest: Schema.Number }),
  endedBy: Schema.Literals(["attempts", "either", "window"]),
  /** Statuses with limits of their own, and their nominal waits. */
  statuses: Schema.Array(
    Schema.Struct({
      status: Schema.String,
      attempts: Schema.Int,
      window: Schema.Number,
      waits: Schema.Array(Schema.Number)
    })
  )
})
export type OutlinedPolicy = typeof OutlinedPolicy.Type

const encode = Schema.encodeSync(RetryPolicy)

/** Returns the outline of a policy, with what its name and its event types are. */
export const outlined = (name: string, policy: RetryPolicy, types?: string): OutlinedPolicy => ({
  name,
  ...(types === undefined ? {} : { types }),
  policy: encode(policy),
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

/** Returns the outlines of an endpoint's retry policies, that for all types first. */
export const outlineEndpoint = Effect.fnUntraced(function* ({ id, tenant }: EndpointName) {
  const { endpoint } = yield* getEndpoint(tenant, id)
  const policies = yield* Effect.fromResult(policiesOf(endpoint))
  return policies.map(({ policy, types }) =>
    outlined(
      nameOf(types === undefined ? endpoint.retry : endpoint.retryFor?.[types]),
      policy,
      types
    )
  )
})
