import { Clock, Effect, Schema } from "effect"
import type { CommandPart } from "../../cluster/command.ts"
import { commandOwner, Retried } from "../../cluster/command.ts"
import type { Endpoint } from "../../domain/endpoint.ts"
import { circuitOf, EndpointName } from "../../domain/endpoint.ts"
import type { Health } from "../../domain/health.ts"
import { notNow } from "../../domain/problem.ts"
import { present } from "../../domain/record.ts"
import type { WaitingFilter } from "../../domain/retry-record.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { endOf, hasEnded } from "../../history/fold/round.ts"
import { countText, zonedTime } from "../../text/quantities.ts"
import { findDelivery } from "../deliveries/explain-delivery.ts"
import { healthOf } from "../endpoints/endpoint-queries.ts"

/** How deliveries are tried now. */
export const RetryNowRequest = Schema.Struct({
  ignoreRetryAfter: Schema.optional(Schema.Boolean).annotateKey({
    description: "Does not wait for the end of the receiver's Retry-After. (Default: false)"
  })
})
export type RetryNowRequest = typeof RetryNowRequest.Type

/** Which of the deliveries are tried. (Default: all) */
interface NarrowedRetry {
  readonly filter?: WaitingFilter | undefined
  /** Counts them only: none is tried. */
  readonly dryRun?: boolean | undefined
  /** The id of the job that asks, which may ask again for an answer that it lost. */
  readonly job?: string | undefined
}

/** What became of the deliveries of an endpoint that were to be tried now. */
export const RetriedEndpoint = Schema.Struct({
  ...EndpointName.fields,
  ...Retried.fields,
  pace: Schema.Array(Schema.String).annotateKey({
    description: "What sets their pace from here on, as sentences."
  })
})
export type RetriedEndpoint = typeof RetriedEndpoint.Type

/** Refuses where nothing can be tried. */
const refuseWhereHeld = ({ disabled, id, paused, suspended, tenant }: Endpoint) => {
  const name = `${tenant}/${id}`
  if (disabled !== undefined)
    return notNow(
      `${name} is disabled, so nothing waits for it: enable it first (\`petrel endpoint enable ${name}\`)`
    )
  if (paused === undefined && suspended === undefined) return undefined
  return notNow(
    `${name} is ${paused === undefined ? "suspended" : "paused"}: resume it to send its deliveries (\`petrel endpoint resume ${name}\`)`
  )
}

/**
 * Returns what sets the pace of deliveries that were hurried. An ignored Retry-After does not, though
 * the worker may not have stored yet that it is over.
 *
 * @param now ms since the epoch.
 */
const paceOf = (
  endpoint: Endpoint,
  health: Health,
  ignoreRetryAfter: boolean,
  now: number
): ReadonlyArray<string> => {
  const { maxInFlight, rate } = endpoint
  const { notBefore = 0 } = health
  const name = `${endpoint.tenant}/${endpoint.id}`
  const { successes } = circuitOf(endpoint)
  return [
    ...(notBefore > now && !ignoreRetryAfter
      ? [
          `the receiver asked to wait until ${zonedTime(notBefore, now)}, which holds unless you ignore it (\`petrel endpoint retry-now ${name} --ignore-retry-after\`)`
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
  { dryRun, filter, ignoreRetryAfter = false, job }: RetryNowRequest & NarrowedRetry,
  by: string,
  onPart?: (part: CommandPart) => void
) {
  const { endpoint } = yield* getEndpoint(tenant, id)
  const held = refuseWhereHeld(endpoint)
  if (held !== undefined) return yield* held
  const { retried } = yield* commandOwner(
    {
      ...{ _tag: "RetryNow", tenant, endpoint: id, ignoreRetryAfter },
      ...present({ filter, dryRun, job })
    },
    by,
    onPart
  )
  const health = yield* healthOf(endpoint)
  const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  return {
    ...{ tenant, id },
    ...(retried ?? { moved: 0, inFlight: 0, inBacklog: 0, left: 0 }),
    pace: paceOf(endpoint, health, ignoreRetryAfter, now)
  } satisfies RetriedEndpoint
})

/** A delivery that was to be tried now. */
export const RetriedDelivery = Schema.Struct({
  delivery: Schema.String.annotateKey({ description: "`<event id>.<endpoint id>`" }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  state: Schema.Literals(["moved", "in-flight", "backlog", "left"]).annotateKey({
    description:
      "`moved`: it waited for its next attempt, and is tried now. `in-flight`: it is being attempted, or about to be. `backlog`: it waits for its endpoint. `left`: its endpoint's backlog is full."
  }),
  pace: Schema.Array(Schema.String).annotateKey({
    description: "What sets its pace from here on, as sentences."
  })
})
export type RetriedDelivery = typeof RetriedDelivery.Type

/**
 * Lets one delivery go on now instead of at its next attempt's time, and probes an endpoint whose
 * circuit is open. Fails with DeliveryNotFound; Invalid where it has ended or its endpoint takes
 * nothing; EndpointNotFound; CommandFailed where no worker does it.
 *
 * @param delivery `<event id>.<endpoint id>`.
 * @param tenant needed if several tenants have such a delivery.
 * @param by who asks for it.
 */
export const retryDelivery = Effect.fnUntraced(function* (
  delivery: string,
  tenant: string | undefined,
  { ignoreRetryAfter = false }: RetryNowRequest,
  by: string
) {
  const life = yield* findDelivery(delivery, tenant)
  const { endpoint: id, eventAt, eventSeq, rounds } = life
  const last = rounds.at(-1)
  if (last !== undefined && rounds.every(({ state }) => hasEnded(state)))
    return yield* notNow(
      `${delivery} has ended (${endOf(last.state)}): resend it to have it sent again (\`petrel delivery resend ${delivery}\`)`
    )
  const { endpoint } = yield* getEndpoint(life.tenant, id)
  const held = refuseWhereHeld(endpoint)
  if (held !== undefined) return yield* held
  const { retried } = yield* commandOwner(
    {
      ...{ _tag: "RetryNow", tenant: life.tenant, endpoint: id, ignoreRetryAfter },
      event: { eventSeq, eventAt }
    },
    by
  )
  const { inFlight = 0, left = 0, moved = 0 } = retried ?? {}
  const state = moved > 0 ? "moved" : inFlight > 0 ? "in-flight" : left > 0 ? "left" : "backlog"
  const health = yield* healthOf(endpoint)
  const pace = paceOf(endpoint, health, ignoreRetryAfter, yield* Clock.currentTimeMillis)
  return { delivery, tenant: life.tenant, endpoint: id, state, pace } satisfies RetriedDelivery
})
