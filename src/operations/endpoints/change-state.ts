import { Effect, Schema } from "effect"
import type { EndpointName } from "../../domain/endpoint.ts"
import { endpointLabel } from "../../domain/endpoint.ts"
import type { ExpectedRevision } from "../../domain/problem.ts"
import {
  disableEndpoint as disable,
  enableEndpoint as enable,
  pauseEndpoint as pause,
  resumeEndpoint as resume
} from "../../endpoints/endpoint-state.ts"
import type { StoredEndpoint } from "../../endpoints/endpoint-store.ts"
import { removeEndpoint as remove } from "../../endpoints/endpoint-store.ts"
import { Contradiction } from "../refusals.ts"
import { EndpointView, endpointView } from "./endpoint-view.ts"

/** Why an endpoint is disabled or paused, recorded in the history. */
export const StateReason = Schema.Struct({ reason: Schema.optional(Schema.String) })
export type StateReason = typeof StateReason.Type

/** An endpoint after a change of its state. */
export const EndpointState = Schema.Struct({
  ...EndpointView.fields,
  changed: Schema.Boolean.annotateKey({ description: "False if it had that state already." })
})
export type EndpointState = typeof EndpointState.Type

/** An endpoint that was removed. */
export const RemovedEndpoint = Schema.Struct({
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  id: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  removed: Schema.Literal(true).annotateKey({ description: "It is gone." })
})
export type RemovedEndpoint = typeof RemovedEndpoint.Type

const stateOf = (stored: StoredEndpoint & { readonly changed: boolean }): EndpointState => ({
  ...endpointView(stored),
  changed: stored.changed
})

/**
 * Disables an endpoint: it gets no events, and what waits for it is dead-lettered.
 *
 * @param by who asks for it, recorded in the history, as in all changes of a state.
 * @param expected the revisions that may be changed, as in all of them; fails with EndpointChanged
 *   for another. (Default: any)
 */
export const disableEndpoint = (
  { id, tenant }: EndpointName,
  { reason = "by hand" }: StateReason,
  by: string,
  expected?: ExpectedRevision
) => Effect.map(disable({ tenant, endpoint: id, expected }, reason, by), stateOf)

/** Puts a disabled endpoint back to work. */
export const enableEndpoint = (
  { id, tenant }: EndpointName,
  by: string,
  expected?: ExpectedRevision
) => Effect.map(enable({ tenant, endpoint: id, expected }, by), stateOf)

/** Holds an endpoint's deliveries back until it is resumed. */
export const pauseEndpoint = (
  { id, tenant }: EndpointName,
  { reason }: StateReason,
  by: string,
  expected?: ExpectedRevision
) => Effect.map(pause({ tenant, endpoint: id, expected }, reason, by), stateOf)

/**
 * Lets a paused endpoint's deliveries go on. Fails with Contradiction where its URL was lost and not
 * set since: what is left of it leads to another address, where the events would count as delivered.
 */
export const resumeEndpoint = Effect.fnUntraced(function* (
  name: EndpointName,
  by: string,
  expected?: ExpectedRevision
) {
  const { id, tenant } = name
  const after = yield* resume({ tenant, endpoint: id, expected }, by)
  if (after.endpoint.paused?.lacksUrl === true)
    return yield* new Contradiction({
      message: `of the URL of ${endpointLabel(name)} only ${after.endpoint.url} is known since the bucket of endpoints was lost: set \`url\` first`
    })
  return stateOf(after)
})

/**
 * Removes an endpoint. What waits for it is dead-lettered.
 *
 * @param expected the revisions that may be removed; fails with EndpointChanged for another.
 *   (Default: any)
 */
export const removeEndpoint = (
  { id, tenant }: EndpointName,
  by: string,
  expected?: ExpectedRevision
) =>
  Effect.as(remove(tenant, id, by, expected), {
    tenant,
    id,
    removed: true
  } satisfies RemovedEndpoint)
