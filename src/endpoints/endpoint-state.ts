import { Clock, Effect } from "effect"
import { readUser } from "../broker/user.ts"
import type { Endpoint } from "../domain/endpoint.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Fact } from "../domain/fact.ts"
import { Facts } from "../history/facts.ts"
import { changeEndpoint } from "./endpoint-store.ts"

/** Stands for people among those who decide. */
const cli = "cli"

/** An endpoint, and which one of that name where that matters. */
interface Target {
  readonly tenant: string
  readonly endpoint: string
  readonly generation?: string
}

/** What is to become of an endpoint, and how the history tells of it. */
interface StateChange extends Pick<Fact, "by" | "worker" | "reason"> {
  readonly kind: "endpoint-disabled" | "endpoint-enabled" | "endpoint-paused" | "endpoint-resumed"
  /** The endpoint after it; undefined where it is so already. `at` is now, ms since the epoch. */
  readonly apply: (endpoint: Endpoint, at: number) => Endpoint | undefined
}

/** Changes an endpoint's state and says so in the history. Leaves one alone that is so already, or is another. */
const changeState = Effect.fnUntraced(function* (
  { endpoint: id, generation, tenant }: Target,
  { apply, kind, ...told }: StateChange
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
    told.by
  )
  if (changed) {
    const facts = yield* Facts
    const user = yield* readUser
    yield* facts.append(
      { v: 1, kind, at, tenant, endpoint: id, user, ...told },
      `${kind}.${endpointKey(tenant, id)}.${stored.revision}`
    )
  }
  return { ...stored, changed }
})

/**
 * Takes an endpoint out of service: it gets no events, and what waits for it ends as dead letters.
 *
 * @param by who decided: a worker's id, or the person who asked for it.
 * @param worker that decided; `cli` for people.
 */
export const disableEndpoint = (target: Target, reason: string, by: string, worker = cli) =>
  changeState(target, {
    ...{ kind: "endpoint-disabled", by, worker, reason },
    apply: (endpoint, at) =>
      endpoint.disabled === undefined ? { ...endpoint, disabled: { at, reason, by } } : undefined
  })

/**
 * Puts a disabled endpoint back to work.
 *
 * @param by who asked for it.
 */
export const enableEndpoint = (target: Target, by: string) =>
  changeState(target, {
    ...{ kind: "endpoint-enabled", by, worker: cli },
    apply: ({ disabled, ...enabled }) => (disabled === undefined ? undefined : enabled)
  })

/**
 * Keeps an endpoint's deliveries back: they wait in its backlog.
 *
 * @param by who asked for it.
 */
export const pauseEndpoint = (target: Target, reason: string | undefined, by: string) =>
  changeState(target, {
    ...{ kind: "endpoint-paused", by, worker: cli, reason },
    apply: (endpoint, at) =>
      endpoint.paused === undefined
        ? { ...endpoint, paused: { at, by, ...(reason === undefined ? {} : { reason }) } }
        : undefined
  })

/**
 * Lets the deliveries of a paused endpoint go on.
 *
 * @param by who asked for it.
 */
export const resumeEndpoint = (target: Target, by: string) =>
  changeState(target, {
    ...{ kind: "endpoint-resumed", by, worker: cli },
    apply: ({ paused, ...resumed }) => (paused === undefined ? undefined : resumed)
  })
