import { Effect, Schema } from "effect"
import { type CommandPart, Retried } from "../../cluster/command.ts"
import { commandOwner } from "../../cluster/command-owner.ts"
import { circuitOf, type Endpoint } from "../../domain/endpoint.ts"
import type { Health } from "../../domain/health.ts"
import { notNow } from "../../domain/problem.ts"
import type { WaitingFilter } from "../../domain/waiting-filter.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { countText } from "../text/number-format.ts"
import { moment } from "../text/time.ts"
import { healthOf } from "./endpoint-queries.ts"
import { EndpointName } from "./endpoint-settings.ts"

/** How deliveries are tried now. */
export const RetryNowRequest = Schema.Struct({
  /** Does not wait for the end of the receiver's Retry-After. (Default: false) */
  ignoreRetryAfter: Schema.optional(Schema.Boolean)
})
export type RetryNowRequest = typeof RetryNowRequest.Type

/** Which of the deliveries are tried. (Default: all) */
export interface NarrowedRetry {
  readonly filter?: WaitingFilter | undefined
  /** Counts them only: none is tried. */
  readonly dryRun?: boolean | undefined
}

/** What became of the deliveries of an endpoint that were to be tried now. */
export const RetriedEndpoint = Schema.Struct({
  ...EndpointName.fields,
  ...Retried.fields,
  /** What sets their pace from here on, as sentences. */
  pace: Schema.Array(Schema.String)
})
export type RetriedEndpoint = typeof RetriedEndpoint.Type

/** Refuses where nothing can be tried. */
export const refuseWhereHeld = ({ disabled, id, paused, suspended, tenant }: Endpoint) => {
  const name = `${tenant}/${id}`
  if (disabled !== undefined)
    return notNow(
      `${name} is disabled, so nothing waits for it: enable it first (\`petrel endpoint enable ${name}\`)`
    )
  if (paused === undefined && suspended === undefined) return undefined
  return notNow(
    `${name} is ${paused === undefined ? "suspended" : "paused"}: resume it to let its deliveries go on (\`petrel endpoint resume ${name}\`)`
  )
}

/**
 * Returns what sets the pace of deliveries that were hurried.
 *
 * @param now ms since the epoch.
 */
export const paceOf = (endpoint: Endpoint, health: Health, now: number): ReadonlyArray<string> => {
  const { maxInFlight, rate } = endpoint
  const { notBefore = 0 } = health
  const name = `${endpoint.tenant}/${endpoint.id}`
  const { successes } = circuitOf(endpoint)
  return [
    ...(notBefore > now
      ? [
          `the receiver asked to wait until ${moment(notBefore, now)}, which holds unless you ignore it (\`petrel endpoint retry-now --ignore-retry-after\`)`
        ]
      : []),
    ...(health.circuit.state === "closed"
      ? []
      : [
          `the circuit is ${health.circuit.state}: one probe at a time goes there, and ${successes} in a row that succeed close it`
        ]),
    `at most ${countText(maxInFlight)} requests at once${rate === undefined ? "" : `, ${rate.perSecond}/s`} (\`petrel endpoint set ${name}\`)`
  ]
}

/**
 * Lets all deliveries that wait for an endpoint go on now instead of at their next attempt's time,
 * under its cap, rate and ramp, and probes an endpoint whose circuit is open. Fails with
 * EndpointNotFound; Invalid where the endpoint takes nothing; CommandFailed where no worker does it.
 *
 * @param by who asks for it.
 * @param onPart called with each sign of life of the worker.
 */
export const retryEndpointNow = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  { dryRun, filter, ignoreRetryAfter = false }: RetryNowRequest & NarrowedRetry,
  by: string,
  onPart?: (part: CommandPart) => void
) {
  const { endpoint } = yield* getEndpoint(tenant, id)
  const held = refuseWhereHeld(endpoint)
  if (held !== undefined) return yield* held
  const { retried } = yield* commandOwner(
    {
      ...{ _tag: "RetryNow", tenant, endpoint: id, ignoreRetryAfter },
      ...(filter === undefined ? {} : { filter }),
      ...(dryRun === undefined ? {} : { dryRun })
    },
    by,
    onPart
  )
  const health = yield* healthOf(endpoint)
  const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  return {
    ...{ tenant, id },
    ...(retried ?? { moved: 0, inFlight: 0, inBacklog: 0, left: 0 }),
    pace: paceOf(endpoint, health, now)
  } satisfies RetriedEndpoint
})
