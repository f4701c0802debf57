import { Effect, Schema } from "effect"
import { EndpointName, endpointLabel } from "../../domain/endpoint.ts"
import { notNow } from "../../domain/problem.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import type { RoundCounts } from "../../rounds/round.ts"
import type { RedeliveryOptions } from "../dead-letters/redeliver-dead-letters.ts"
import {
  planRedelivery,
  Redelivered,
  RedeliveryPlan
} from "../dead-letters/redeliver-dead-letters.ts"
import type { RetryOptions } from "./retry-waiting.ts"
import { RetriedDeliveries, retryWaiting } from "./retry-waiting.ts"

/** What is sent again: all that failed at an endpoint from a time on. */
export const RecoverySelection = Schema.Struct({
  endpoint: EndpointName.annotateKey({ description: "The id of the endpoint." }),
  since: Timestamp.annotateKey({ description: "Failed then or later." }),
  until: Timestamp.annotateKey({ description: "Failed then or earlier." })
})
export type RecoverySelection = typeof RecoverySelection.Type

/** What waited for its next attempt, and goes on now. */
const retried = {
  retried: RetriedDeliveries.annotateKey({ description: "Waiting deliveries that are tried now." })
}

/** What a recovery would do: with dead letters, and with what waits. */
export const RecoveryPlan = Schema.Struct({ ...RedeliveryPlan.fields, ...retried })
export type RecoveryPlan = typeof RecoveryPlan.Type

/** What a recovery did. */
export const Recovered = Schema.Struct({ ...Redelivered.fields, ...retried })
export type Recovered = typeof Recovered.Type

/** How a recovery is watched, and where each half of it goes on. */
interface RecoveryOptions {
  readonly retry: RetryOptions
  readonly redelivery: RedeliveryOptions
}

/** Fails where an endpoint is not there, or takes nothing. */
export const checkRecovery = Effect.fnUntraced(function* ({ id, tenant }: EndpointName) {
  const { endpoint } = yield* getEndpoint(tenant, id)
  const name = endpointLabel({ tenant, id })
  if (endpoint.disabled !== undefined)
    return yield* notNow(
      `${name} is disabled and takes nothing: enable it first (\`petrel endpoint enable ${name}\`)`
    )
})

const halves = ({ endpoint, since, until }: RecoverySelection) => ({
  waiting: { tenant: endpoint.tenant, endpoint: endpoint.id, since, until },
  dead: { tenant: endpoint.tenant, endpoint, since, until }
})

/** Returns what a recovery would do. Fails with CommandFailed where no worker knows what waits. */
export const previewRecovery = Effect.fnUntraced(function* (
  selection: RecoverySelection,
  by: string
) {
  const { dead, waiting } = halves(selection)
  const retried = yield* retryWaiting(waiting, { by, dryRun: true })
  const { plan } = yield* planRedelivery(dead, { by })
  return { ...plan, retried } satisfies RecoveryPlan
})

/**
 * Sends again all that failed at an endpoint within a time: lets what waits for its next attempt go
 * on now, and plans to send its dead letters again, each delivery once, which `run` does. It is safe
 * to interrupt and to run again: nothing is sent twice for that.
 */
export const recoverEndpoint = Effect.fnUntraced(function* (
  selection: RecoverySelection,
  { redelivery, retry }: RecoveryOptions
) {
  const { dead, waiting } = halves(selection)
  const retried = yield* retryWaiting(waiting, retry)
  const { own, plan, run } = yield* planRedelivery(dead, redelivery)
  return {
    plan,
    /** The number of dead letters that this work has sent before it was broken off. */
    own,
    /** @param progress called after each round of a dead letter. */
    run: (progress: (counts: RoundCounts) => void = () => undefined) =>
      Effect.map(run(progress), (done): Recovered => ({ ...done, retried }))
  }
})
