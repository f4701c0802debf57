import type { KvEntry } from "@nats-io/kv"
import { Effect, Result, Schema, Stream } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import type { HeaderList, PublishError } from "../broker/publisher.ts"
import { readUser } from "../broker/user.ts"
import { isConflict, readValue, readValues, writeValue } from "../broker/values.ts"
import type { Endpoint } from "../domain/endpoint.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { appendChange, authorHeaders } from "../history/configuration.ts"
import { readChange } from "./endpoint-changes.ts"
import type { EndpointUnreadable } from "./endpoint-value.ts"
import { decodeEndpoint, encodeEndpoint } from "./endpoint-value.ts"

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

/**
 * Writes what is under a key, and tells the history of it; where that is not possible now, the
 * workers do it, which see each change.
 */
const write = Effect.fnUntraced(function* (
  key: string,
  value: string,
  options: { readonly by?: string | undefined; readonly expected?: number; readonly removes?: true }
) {
  const { names } = yield* Broker
  const { by, expected, removes } = options
  const revision = yield* writeValue(names.buckets.endpoints, key, value, {
    ...(expected === undefined ? {} : { expected }),
    headers: [...(removes === true ? removal : []), ...authorHeaders({ by, user: yield* readUser })]
  }).pipe(
    Effect.map(({ seq }) => seq),
    Effect.catchIf(
      ({ reason }) => reason === "timeout",
      (error) => Effect.flatMap(findWritten(key, value), (found) => found ?? Effect.fail(error))
    )
  )
  yield* Effect.ignore(tell(key, revision))
  return revision
})

/** A time-out does not say whether a value was stored: its revision, where it is there. */
const findWritten = Effect.fnUntraced(function* (key: string, value: string) {
  const { ask } = yield* Broker
  const bucket = yield* openBucket
  const entry = yield* ask(`read ${key}`, () => bucket.get(key))
  return entry?.string() === value ? Effect.succeed(entry.revision) : undefined
})

const removal: HeaderList = [["KV-Operation", "DEL"]]

const tell = Effect.fnUntraced(function* (key: string, revision: number) {
  const change = yield* readChange(key, revision)
  if (change !== undefined) yield* appendChange(change)
})

/**
 * Stores a new endpoint. Fails with EndpointExists where there is one of that name.
 *
 * @param by who adds it, as the history tells it.
 */
export const addEndpoint = Effect.fnUntraced(function* (endpoint: Endpoint, by?: string) {
  const { ask } = yield* Broker
  const { id, tenant } = endpoint
  const key = endpointKey(tenant, id)
  const bucket = yield* openBucket
  const exists = () => new EndpointExists({ tenant, id })
  const entry = yield* ask(`read ${key}`, () => bucket.get(key))
  if (entry?.operation === "PUT") return yield* exists()
  const value = JSON.stringify(encodeEndpoint(endpoint))
  const revision = yield* write(key, value, { by, expected: entry?.revision ?? 0 }).pipe(
    Effect.catchIf(isConflict, exists)
  )
  return { endpoint, revision } satisfies StoredEndpoint
})

/**
 * Changes an endpoint by compare-and-set: `change` is asked again with what is there now when
 * somebody else was faster. It returns undefined to leave the endpoint as it is.
 *
 * @param by who changes it, as the history tells it.
 */
export const changeEndpoint = <E, R>(
  tenant: string,
  id: string,
  change: (endpoint: Endpoint) => Effect.Effect<Endpoint | undefined, E, R>,
  by?: string
): Effect.Effect<
  StoredEndpoint,
  E | BrokerError | PublishError | EndpointNotFound | EndpointUnreadable,
  R | Broker
> =>
  Effect.gen(function* () {
    const stored = yield* getEndpoint(tenant, id)
    const endpoint = yield* change(stored.endpoint)
    if (endpoint === undefined) return stored
    const value = JSON.stringify(encodeEndpoint(endpoint))
    const options = { by, expected: stored.revision }
    const revision = yield* write(endpointKey(tenant, id), value, options).pipe(
      Effect.catchIf(isConflict, () => Effect.succeed(undefined))
    )
    if (revision === undefined) return yield* changeEndpoint(tenant, id, change, by)
    return { endpoint, revision } satisfies StoredEndpoint
  })

/**
 * Removes an endpoint, also one whose configuration does not parse; what waits for it ends as dead
 * letters in the worker that owns it.
 *
 * @param by who removes it, as the history tells it.
 */
export const removeEndpoint = Effect.fnUntraced(function* (
  tenant: string,
  id: string,
  by?: string
) {
  const key = endpointKey(tenant, id)
  if ((yield* readValue(yield* openBucket, key)) === undefined)
    return yield* new EndpointNotFound({ tenant, id })
  yield* write(key, "", { by, removes: true })
})
