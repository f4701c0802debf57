import type { KvEntry } from "@nats-io/kv"
import { Effect, Result, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { HeaderList, PublishError } from "../broker/publication.ts"
import { readUser } from "../broker/user.ts"
import { isConflict, readValues, writeValue } from "../broker/values.ts"
import type { Endpoint } from "../domain/endpoint.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { ExpectedRevision } from "../domain/problem.ts"
import type { EndpointChange, StateChange } from "../history/configuration.ts"
import { appendChange, appendState, authorHeaders, stateHeaders } from "../history/configuration.ts"
import { named, readChange } from "./endpoint-changes.ts"
import type { EndpointUnreadable } from "./stored-values.ts"
import { decodeEndpoint, encodeEndpoint } from "./stored-values.ts"

/** An endpoint's configuration in the bucket, with its revision. */
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
    return `there is no endpoint ${this.tenant}/${this.id}: \`petrel endpoint list\` shows those that exist`
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

/** An endpoint is not at the revision that a change expects: it was changed in between. */
export class EndpointChanged extends Schema.TaggedError<EndpointChanged>()("EndpointChanged", {
  tenant: Schema.String,
  id: Schema.String,
  revision: Schema.Int
}) {
  override get message() {
    const label = `${this.tenant}/${this.id}`
    return this.revision === 0
      ? `${label} is not there, and the request changes only one that is`
      : `${label} is at revision ${this.revision} now: read it again, and decide again`
  }
}

const decodeEntry = (entry: KvEntry) =>
  Effect.fromResult(decodeEndpoint(entry.key, entry.string())).pipe(
    Effect.map((endpoint): StoredEndpoint => ({ endpoint, revision: entry.revision }))
  )

/** Reads the entry under a key from the leader; null where there has been none. */
const readEntry = (key: string) =>
  Effect.flatMap(Broker, ({ entry, names }) => entry(names.buckets.endpoints, key))

/** Reads an endpoint's configuration from the leader. */
export const getEndpoint = Effect.fnUntraced(function* (tenant: string, id: string) {
  const entry = yield* readEntry(endpointKey(tenant, id))
  if (entry?.operation !== "PUT") return yield* new EndpointNotFound({ tenant, id })
  return yield* decodeEntry(entry)
})

/**
 * Lists all endpoints, or a tenant's, in the order of their keys. Skips one whose configuration
 * does not parse, with a warning.
 */
export const listEndpoints = Effect.fnUntraced(function* (tenant?: string) {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.endpoints, `${tenant ?? "*"}.*`))
  const stored: Array<StoredEndpoint> = []
  for (const { key, revision, text } of values.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
    const endpoint = decodeEndpoint(key, text)
    if (Result.isSuccess(endpoint)) stored.push({ endpoint: endpoint.success, revision })
    else yield* Effect.logWarning(endpoint.failure.message)
  }
  return stored
})

interface ChangeOptions {
  /** Who changes the endpoint, recorded in the history. */
  readonly by?: string | undefined
  /** The revisions that may be changed; fails with EndpointChanged for another. (Default: any) */
  readonly expected?: ExpectedRevision | undefined
  /** Set where the change brings the endpoint into another state. */
  readonly state?: StateChange
}

/**
 * Writes the value under a key, and appends the change to the history. If the append fails, the
 * workers append it: they see each change.
 */
const write = Effect.fnUntraced(function* (
  key: string,
  value: string,
  options: Omit<ChangeOptions, "expected"> & {
    readonly expected?: number
    readonly removes?: true
  }
) {
  const { names } = yield* Broker
  const { by, expected, removes, state } = options
  const user = yield* readUser
  const revision = yield* writeValue(names.buckets.endpoints, key, value, {
    ...(expected === undefined ? {} : { expected }),
    headers: [
      ...(removes === true ? removal : []),
      ...authorHeaders({ by, user }),
      ...stateHeaders(state)
    ]
  }).pipe(
    Effect.map(({ seq }) => seq),
    Effect.catchIf(
      ({ reason }) => reason === "timeout",
      (error) => Effect.flatMap(findWritten(key, value), (found) => found ?? Effect.fail(error))
    )
  )
  const change = named(key, { revision, at: 0, text: removes === true ? undefined : value })
  yield* Effect.ignore(recordChange(key, { ...change, by, user, state }))
  return revision
})

/** After a time-out, returns the value's revision if it was stored. */
const findWritten = Effect.fnUntraced(function* (key: string, value: string) {
  const entry = yield* readEntry(key)
  return entry?.string() === value ? Effect.succeed(entry.revision) : undefined
})

const removal: HeaderList = [["KV-Operation", "DEL"]]

/** Only the bucket tells when it stored a change, and keeps the last one of each key. */
const recordChange = Effect.fnUntraced(function* (key: string, written: EndpointChange) {
  const change = yield* readChange(key, written.change.revision)
  yield* change === undefined ? appendState(written) : appendChange(change)
})

/**
 * Stores a new endpoint. Fails with EndpointExists if there is one of that name.
 *
 * @param by who adds it, recorded in the history.
 */
export const addEndpoint = Effect.fnUntraced(function* (endpoint: Endpoint, by?: string) {
  const { id, tenant } = endpoint
  const key = endpointKey(tenant, id)
  const exists = () => new EndpointExists({ tenant, id })
  const entry = yield* readEntry(key)
  if (entry?.operation === "PUT") return yield* exists()
  const value = JSON.stringify(encodeEndpoint(endpoint))
  const revision = yield* write(key, value, { by, expected: entry?.revision ?? 0 }).pipe(
    Effect.catchIf(isConflict, exists)
  )
  return { endpoint, revision } satisfies StoredEndpoint
})

/** Fails if an endpoint is at another revision than the expected ones. */
const refuseOther = (
  name: { readonly tenant: string; readonly id: string },
  revision: number,
  expected: ExpectedRevision = "any"
) =>
  expected === "any" || expected.includes(revision)
    ? Effect.void
    : Effect.fail(new EndpointChanged({ ...name, revision }))

/**
 * Changes an endpoint by compare-and-set. `change` is called again with the current value if
 * another write was faster. It returns undefined to leave the endpoint unchanged.
 */
export const changeEndpoint = <E, R>(
  tenant: string,
  id: string,
  change: (endpoint: Endpoint) => Effect.Effect<Endpoint | undefined, E, R>,
  options: ChangeOptions = {}
): Effect.Effect<
  StoredEndpoint,
  E | BrokerError | PublishError | EndpointNotFound | EndpointUnreadable | EndpointChanged,
  R | Broker
> =>
  Effect.gen(function* () {
    const stored = yield* getEndpoint(tenant, id)
    yield* refuseOther({ tenant, id }, stored.revision, options.expected)
    const endpoint = yield* change(stored.endpoint)
    if (endpoint === undefined) return stored
    const value = JSON.stringify(encodeEndpoint(endpoint))
    const { revision: expected } = stored
    const revision = yield* write(endpointKey(tenant, id), value, { ...options, expected }).pipe(
      Effect.catchIf(isConflict, () => Effect.succeed(undefined))
    )
    if (revision === undefined) return yield* changeEndpoint(tenant, id, change, options)
    return { endpoint, revision } satisfies StoredEndpoint
  })

/**
 * Removes an endpoint, even if its configuration does not parse. The partition's owner dead-letters
 * its waiting deliveries.
 *
 * @param by who removes it, recorded in the history.
 * @param expected the revisions that may be removed; fails with EndpointChanged for another.
 *   (Default: any)
 */
export const removeEndpoint = Effect.fnUntraced(function* (
  tenant: string,
  id: string,
  by?: string,
  expected: ExpectedRevision = "any"
) {
  const key = endpointKey(tenant, id)
  const entry = yield* readEntry(key)
  if (entry?.operation !== "PUT") return yield* new EndpointNotFound({ tenant, id })
  yield* refuseOther({ tenant, id }, entry.revision, expected)
  yield* write(key, "", {
    by,
    removes: true,
    ...(expected === "any" ? {} : { expected: entry.revision })
  }).pipe(
    Effect.catchIf(isConflict, () => new EndpointChanged({ tenant, id, revision: entry.revision }))
  )
})
