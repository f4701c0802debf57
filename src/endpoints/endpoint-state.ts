import { Clock, Effect } from "effect"
import { readUser } from "../broker/user.ts"
import type { Endpoint } from "../domain/endpoint.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Fact } from "../domain/fact.ts"
import { Facts } from "../history/facts.ts"
import { changeEndpoint } from "./endpoint-store.ts"

/** The `worker` of decisions that people make. */
const cli = "cli"

/** An endpoint, and its generation if only that one is meant. */
interface StateTarget {
  readonly tenant: string
  readonly endpoint: string
  readonly generation?: string
}

/** A change of an endpoint's state, and how its fact records it. */
interface StateChange extends Pick<Fact, "by" | "worker" | "reason"> {
  readonly kind: "endpoint-disabled" | "endpoint-enabled" | "endpoint-paused" | "endpoint-resumed"
  /**
   * Returns the changed endpoint; undefined if it has that state already. `at` is now, ms since the
   * epoch.
   */
  readonly apply: (endpoint: Endpoint, at: number) => Endpoint | undefined
}

/**
 * Changes an endpoint's state and appends the fact. Leaves the endpoint alone if it has that state
 * already or is of another generation.
 */
const changeState = Effect.fnUntraced(function* (
  { endpoint: id, generation, tenant }: StateTarget,
  { apply, kind, ...details }: StateChange
) {
  const at = yield* Clock.currentTimeMillis
  let changed = false
  const stored = yield* changeEndpoint(
    tenant,
    id,
    (endpoint) => {
      const isMeant = generation === undefined || generation === endpoint.generation
      const after = isMeant ? apply(endpoint, at) : undefined
      changed = after !== undefined
      return Effect.succeed(after === undefined ? undefined : { ...after, updatedAt: at })
    },
    details.by
  )
  if (changed) {
    const facts = yield* Facts
    const user = yield* readUser
    yield* facts.append(
      { v: 1, kind, at, tenant, endpoint: id, user, ...details },
      `${kind}.${endpointKey(tenant, id)}.${stored.revision}`
    )
  }
  return { ...stored, changed }
})

/**
 * Disables an endpoint: it gets no events, and its waiting deliveries are dead-lettered.
 *
 * @param by who decided: a worker's id, or the person who asked for it.
 * @param worker the worker that decided; `cli` for people.
 */
export const disableEndpoint = (target: StateTarget, reason: string, by: string, worker = cli) =>
  changeState(target, {
    ...{ kind: "endpoint-disabled", by, worker, reason },
    apply: (endpoint, at) =>
      endpoint.disabled === undefined ? { ...endpoint, disabled: { at, reason, by } } : undefined
  })

/**
 * Enables a disabled endpoint.
 *
 * @param by who asked for it.
 */
export const enableEndpoint = (target: StateTarget, by: string) =>
  changeState(target, {
    ...{ kind: "endpoint-enabled", by, worker: cli },
    apply: ({ disabled, ...enabled }) => (disabled === undefined ? undefined : enabled)
  })

/**
 * Pauses an endpoint: its deliveries wait in its backlog.
 *
 * @param by who asked for it.
 */
export const pauseEndpoint = (target: StateTarget, reason: string | undefined, by: string) =>
  changeState(target, {
    ...{ kind: "endpoint-paused", by, worker: cli, reason },
    apply: (endpoint, at) =>
      endpoint.paused === undefined
        ? { ...endpoint, paused: { at, by, ...(reason === undefined ? {} : { reason }) } }
        : undefined
  })

/**
 * Resumes the deliveries of a paused endpoint.
 *
 * @param by who asked for it.
 */
export const resumeEndpoint = (target: StateTarget, by: string) =>
  changeState(target, {
    ...{ kind: "endpoint-resumed", by, worker: cli },
    apply: ({ paused, ...resumed }) => (paused === undefined ? undefined : resumed)
  })
