import { Clock, Effect } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import { endpointKey, isHeldBack } from "../domain/endpoint.ts"
import type { ExpectedRevision } from "../domain/problem.ts"
import type { StateChange } from "../history/configuration.ts"
import { changeEndpoint } from "./endpoint-store.ts"

/** The `worker` of decisions that people make. */
const cli = "cli"

/** An endpoint, and its generation or revision if only that one is meant. */
interface StateTarget {
  readonly tenant: string
  readonly endpoint: string
  readonly generation?: string
  /** Fails with EndpointChanged for another revision. (Default: any) */
  readonly expected?: ExpectedRevision | undefined
}

/** A change of an endpoint's state, and who asked for it. */
interface AskedChange extends Omit<StateChange, "at"> {
  readonly by: string
  /**
   * Returns the changed endpoint; undefined if it has that state already. `at` is now, ms since the
   * epoch.
   */
  readonly apply: (endpoint: Endpoint, at: number) => Endpoint | undefined
}

/**
 * Changes an endpoint's state, which is recorded as a fact. Leaves the endpoint alone if it has that
 * state already or is of another generation.
 */
const changeState = Effect.fnUntraced(function* (
  { endpoint: id, expected, generation, tenant }: StateTarget,
  { apply, by, kind, worker }: AskedChange
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
    { by, expected, state: { kind, at, worker } }
  )
  return { ...stored, changed }
})

/**
 * Disables an endpoint: it gets no events, and its waiting deliveries are dead-lettered. Ends its
 * suspension: nothing waits any more.
 *
 * @param by who decided: a worker's id, or the person who asked for it.
 * @param worker the worker that decided; `cli` for people.
 */
export const disableEndpoint = (target: StateTarget, reason: string, by: string, worker = cli) =>
  changeState(target, {
    ...{ kind: "endpoint-disabled", by, worker },
    apply: ({ suspended: _, ...endpoint }, at) =>
      endpoint.disabled === undefined ? { ...endpoint, disabled: { at, reason, by } } : undefined
  })

/**
 * Suspends an endpoint that is given up: its deliveries wait in its backlog until it is resumed, or
 * their deadlines pass.
 *
 * @param worker the worker that decided.
 */
export const suspendEndpoint = (target: StateTarget, reason: string, worker: string) =>
  changeState(target, {
    ...{ kind: "endpoint-suspended", by: worker, worker },
    apply: (endpoint, at) =>
      endpoint.disabled === undefined && endpoint.suspended === undefined
        ? { ...endpoint, suspended: { at, reason, by: worker } }
        : undefined
  })

/**
 * Gives an endpoint up: disables or suspends it. A failure is logged.
 *
 * @param how what its circuit's settings say.
 * @param worker the worker that decided.
 */
export const giveUpEndpoint = (
  target: StateTarget,
  how: "disable" | "suspend",
  reason: string,
  worker: string
) =>
  (how === "disable"
    ? disableEndpoint(target, reason, worker, worker)
    : suspendEndpoint(target, reason, worker)
  ).pipe(
    Effect.asVoid,
    Effect.catch((error) =>
      Effect.logWarning("an endpoint could not be given up", {
        endpoint: endpointKey(target.tenant, target.endpoint),
        reason,
        why: error.message
      })
    )
  )

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
    ...{ kind: "endpoint-paused", by, worker: cli },
    apply: (endpoint, at) =>
      endpoint.paused === undefined
        ? { ...endpoint, paused: { at, by, ...(reason === undefined ? {} : { reason }) } }
        : undefined
  })

/**
 * Resumes the deliveries of a paused or suspended endpoint, but of none whose URL is not known.
 *
 * @param by who asked for it.
 */
export const resumeEndpoint = (target: StateTarget, by: string) =>
  changeState(target, {
    ...{ kind: "endpoint-resumed", by, worker: cli },
    apply: (endpoint) => {
      const { paused: _, suspended: __, ...resumed } = endpoint
      return isHeldBack(endpoint) && endpoint.paused?.lacksUrl !== true ? resumed : undefined
    }
  })
