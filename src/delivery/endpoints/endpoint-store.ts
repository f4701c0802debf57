import type { KvEntry } from "@nats-io/kv"
import { Clock, Effect, Result, Schema, Stream } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { readUser } from "../../broker/user.ts"
import { isConflict, readValue, readValues } from "../../broker/values.ts"
import type { EndpointJson } from "../../domain/endpoint.ts"
import { Endpoint } from "../../domain/endpoint.ts"
import { Facts } from "../../history/facts.ts"
import { resolveRetry } from "../../policy/presets.ts"

/** An endpoint's configuration as the bucket holds it, with the revision it has there. */
export interface StoredEndpoint {
  readonly endpoint: Endpoint
  readonly revision: number
}

/** There is no endpoint of this name. */
export class EndpointNotFound extends Schema.TaggedError<EndpointNotFound>()("EndpointNotFound", {
  tenant: Schema.String,
  id: Schema.String
}) {
  override get message() {
    return `there is no endpoint ${this.tenant}/${this.id}: \`petrel endpoint list\` shows those there are`
  }
}

/** There is an endpoint of this name already. */
export class EndpointExists extends Schema.TaggedError<EndpointExists>()("EndpointExists", {
  tenant: Schema.String,
  id: Schema.String
}) {
  override get message() {
    return `there is an endpoint ${this.tenant}/${this.id} already: change it with \`petrel endpoint set\``
  }
}

/** A stored configuration that is not one: written by something else than Petrel. */
export class EndpointUnreadable extends Schema.TaggedError<EndpointUnreadable>()(
  "EndpointUnreadable",
  { key: Schema.String, problem: Schema.String }
) {
  override get message() {
    return `the configuration of endpoint ${this.key} does not parse: ${this.problem}`
  }
}

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Endpoint))
const encode = Schema.encodeSync(Endpoint)

/** `<tenant>.<endpoint>`: the key of an endpoint in its bucket. */
export const endpointKey = (tenant: string, id: string): string => `${tenant}.${id}`

/** The configuration in a value of the endpoints bucket. Its retry policy is known to resolve. */
export const decodeEndpoint = (
  key: string,
  value: string
): Result.Result<Endpoint, EndpointUnreadable> => {
  const unreadable = (problem: string) => Result.fail(new EndpointUnreadable({ key, problem }))
  const decoded = decode(value)
  if (Result.isFailure(decoded))
    return unreadable(decoded.failure.message.replaceAll(/\s*\n\s*/g, " "))
  const endpoint = decoded.success
  const own = endpointKey(endpoint.tenant, endpoint.id)
  if (own !== key) return unreadable(`it is that of ${own}`)
  const policy = resolveRetry(endpoint.retry)
  return Result.isFailure(policy) ? unreadable(policy.failure.message) : Result.succeed(endpoint)
}

const decodeEntry = (entry: KvEntry) =>
  Effect.fromResult(decodeEndpoint(entry.key, entry.string())).pipe(
    Effect.map((endpoint): StoredEndpoint => ({ endpoint, revision: entry.revision }))
  )

const openBucket = Effect.gen(function* () {
  const { bucket, names } = yield* Broker
  return yield* bucket(names.buckets.endpoints)
})

/** An endpoint's configuration from the leader. */
export const getEndpoint = Effect.fnUntraced(function* (tenant: string, id: string) {
  const entry = yield* readValue(yield* openBucket, endpointKey(tenant, id))
  if (entry === undefined) return yield* new EndpointNotFound({ tenant, id })
  return yield* decodeEntry(entry)
})

/**
 * All endpoints, or a tenant's, in the order of their names. One whose configuration does not parse
 * is left out, with a warning.
 */
export const listEndpoints = Effect.fnUntraced(function* (tenant?: string) {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(
    readValues(names.buckets.endpoints, tenant === undefined ? ">" : `${tenant}.*`)
  )
  const stored: Array<StoredEndpoint> = []
  for (const { key, revision, text } of values.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
    const endpoint = decodeEndpoint(key, text)
    if (Result.isSuccess(endpoint)) stored.push({ endpoint: endpoint.success, revision })
    else yield* Effect.logWarning(endpoint.failure.message)
  }
  return stored
})

const write = (key: string, endpoint: EndpointJson, expected: number) =>
  Effect.gen(function* () {
    const { ask } = yield* Broker
    const bucket = yield* openBucket
    const value = JSON.stringify(endpoint)
    return yield* ask(`write ${key}`, () =>
      expected === 0 ? bucket.create(key, value) : bucket.update(key, value, expected)
    )
  })

/** Stores a new endpoint. Fails with EndpointExists where there is one of that name. */
export const addEndpoint = Effect.fnUntraced(function* (endpoint: Endpoint) {
  const revision = yield* write(
    endpointKey(endpoint.tenant, endpoint.id),
    encode(endpoint),
    0
  ).pipe(
    Effect.catchIf(
      isConflict,
      () => new EndpointExists({ tenant: endpoint.tenant, id: endpoint.id })
    )
  )
  return { endpoint, revision } satisfies StoredEndpoint
})

/**
 * Changes an endpoint by compare-and-set: `change` is asked again with what is there now when
 * somebody else was faster. It returns undefined to leave the endpoint as it is.
 */
export const changeEndpoint = <E, R>(
  tenant: string,
  id: string,
  change: (endpoint: Endpoint) => Effect.Effect<Endpoint | undefined, E, R>
): Effect.Effect<
  StoredEndpoint,
  E | BrokerError | EndpointNotFound | EndpointUnreadable,
  R | Broker
> =>
  Effect.gen(function* () {
    const stored = yield* getEndpoint(tenant, id)
    const endpoint = yield* change(stored.endpoint)
    if (endpoint === undefined) return stored
    const written = yield* write(endpointKey(tenant, id), encode(endpoint), stored.revision).pipe(
      Effect.catchIf(isConflict, () => Effect.succeed(undefined))
    )
    if (written === undefined) return yield* changeEndpoint(tenant, id, change)
    return { endpoint, revision: written } satisfies StoredEndpoint
  })

/**
 * Removes an endpoint, also one whose configuration does not parse; what waits for it ends as dead
 * letters in the worker that owns it.
 */
export const removeEndpoint = Effect.fnUntraced(function* (tenant: string, id: string) {
  const { ask } = yield* Broker
  const bucket = yield* openBucket
  const key = endpointKey(tenant, id)
  if ((yield* readValue(bucket, key)) === undefined)
    return yield* new EndpointNotFound({ tenant, id })
  yield* ask(`remove ${key}`, () => bucket.delete(key))
})

/**
 * Takes an endpoint out of service and says so in the history. Leaves one alone that is disabled
 * already, or is not the one that is meant.
 *
 * @param generation of the endpoint that is meant, where that matters.
 * @param by who decided: a worker's id, or `cli`.
 */
export const disableEndpoint = Effect.fnUntraced(function* (
  target: { readonly tenant: string; readonly endpoint: string; readonly generation?: string },
  reason: string,
  by: string
) {
  const at = yield* Clock.currentTimeMillis
  let changed = false
  const stored = yield* changeEndpoint(target.tenant, target.endpoint, (endpoint) => {
    const meant = target.generation === undefined || target.generation === endpoint.generation
    changed = meant && endpoint.disabled === undefined
    return Effect.succeed(
      changed ? { ...endpoint, disabled: { at, reason, by }, updatedAt: at } : undefined
    )
  })
  if (changed) yield* tell("endpoint-disabled", stored, at, by, reason)
  return { ...stored, changed }
})

/** Puts a disabled endpoint back to work and says so in the history. */
export const enableEndpoint = Effect.fnUntraced(function* (
  target: { readonly tenant: string; readonly endpoint: string },
  by: string
) {
  const at = yield* Clock.currentTimeMillis
  let changed = false
  const stored = yield* changeEndpoint(target.tenant, target.endpoint, (endpoint) => {
    changed = endpoint.disabled !== undefined
    const { disabled: _, ...enabled } = endpoint
    return Effect.succeed(changed ? { ...enabled, updatedAt: at } : undefined)
  })
  if (changed) yield* tell("endpoint-enabled", stored, at, by)
  return { ...stored, changed }
})

/**
 * Keeps an endpoint's deliveries back and says so in the history: they wait in its backlog. Leaves
 * one alone that is paused already.
 *
 * @param by who decided: `cli`.
 */
export const pauseEndpoint = Effect.fnUntraced(function* (
  target: { readonly tenant: string; readonly endpoint: string },
  reason: string | undefined,
  by: string
) {
  const at = yield* Clock.currentTimeMillis
  let changed = false
  const stored = yield* changeEndpoint(target.tenant, target.endpoint, (endpoint) => {
    changed = endpoint.paused === undefined
    const paused = { at, by, ...(reason === undefined ? {} : { reason }) }
    return Effect.succeed(changed ? { ...endpoint, paused, updatedAt: at } : undefined)
  })
  if (changed) yield* tell("endpoint-paused", stored, at, by, reason)
  return { ...stored, changed }
})

/** Lets the deliveries of a paused endpoint go on and says so in the history. */
export const resumeEndpoint = Effect.fnUntraced(function* (
  target: { readonly tenant: string; readonly endpoint: string },
  by: string
) {
  const at = yield* Clock.currentTimeMillis
  let changed = false
  const stored = yield* changeEndpoint(target.tenant, target.endpoint, (endpoint) => {
    changed = endpoint.paused !== undefined
    const { paused: _, ...resumed } = endpoint
    return Effect.succeed(changed ? { ...resumed, updatedAt: at } : undefined)
  })
  if (changed) yield* tell("endpoint-resumed", stored, at, by)
  return { ...stored, changed }
})

const tell = Effect.fnUntraced(function* (
  kind: "endpoint-disabled" | "endpoint-enabled" | "endpoint-paused" | "endpoint-resumed",
  { endpoint, revision }: StoredEndpoint,
  at: number,
  by: string,
  reason?: string
) {
  const facts = yield* Facts
  const user = yield* readUser
  const { id, tenant } = endpoint
  yield* facts.append(
    {
      v: 1,
      kind,
      at,
      tenant,
      endpoint: id,
      worker: by,
      user,
      reason
    },
    `${kind}.${endpointKey(tenant, id)}.${revision}`
  )
})
