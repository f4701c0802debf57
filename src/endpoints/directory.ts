import { Context, Effect, Layer } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { readValue } from "../broker/values.ts"
import type { Delivery } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Currentness } from "./currentness.ts"
import { CurrentnessSwitch } from "./currentness.ts"
import { readDirectory } from "./directory-reading.ts"
import type { EndpointOutline, RoutableEndpoint } from "./directory-table.ts"
import { DirectoryTable } from "./directory-table.ts"
import { makeChangeRecorder } from "./endpoint-changes.ts"
import type { HostIndex } from "./host-index.ts"
import type { LiveEndpoint } from "./live-endpoint.ts"
import { makeLive } from "./live-endpoint.ts"
import type { EndpointUnreadable } from "./stored-values.ts"
import { decodeEndpoint } from "./stored-values.ts"

/** Pause before the endpoints are read again after a failure, ms. */
const retryPauseMs = 1_000

/**
 * Watches the bucket until the scope closes: the broker sends each change once, and nothing is read
 * to get it. After a reconnect everything is read again, because a watch can miss changes. Returns
 * when the first reading is complete.
 *
 * A reading is complete when it has reached the state that the leader had after the watch was
 * started. The table is not current from a reconnect until then, nor while the watch is behind the
 * leader or the leader does not answer (`WatchLag`).
 *
 * No change is applied before the history has it: readers of the history can then tell what a plan
 * was made from.
 *
 * @param unavailable called with the keys of endpoints that are disabled, removed or replaced.
 */
export const keepReading = Effect.fnUntraced(function* (
  table: DirectoryTable,
  unavailable: (key: string) => void
) {
  const { onReconnect } = yield* Broker
  const recorder = yield* makeChangeRecorder
  const currentness = new CurrentnessSwitch()
  const forget = onReconnect(() => currentness.onReconnect())
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  const reading = readDirectory({ table, recorder, currentness, unavailable })
  yield* Effect.forkScoped(
    keepGoing("read the endpoints", reading, retryPauseMs, Effect.logWarning)
  )
  yield* currentness.complete
  return currentness satisfies Currentness
})

export type { RoutableEndpoint } from "./directory-table.ts"
export type { LiveEndpoint } from "./live-endpoint.ts"

/** State of an endpoint for a delivery that was routed to it. */
export type Standing =
  | { readonly _tag: "Live"; readonly endpoint: LiveEndpoint }
  | { readonly _tag: "Disabled"; readonly endpoint: LiveEndpoint }
  | { readonly _tag: "Removed" }

/** Called when an endpoint is disabled, suspended, removed, or replaced by another of its name. */
type UnavailableListener = (tenant: string, endpoint: string) => void

/**
 * All endpoints, kept current by a watch on their bucket. Matching reads memory only. If a delivery
 * names a later revision than the watch has shown, the endpoint is read from the leader.
 */
export class Directory extends Context.Service<
  Directory,
  {
    /**
     * Returns the tenant's endpoints that want the type, disabled ones included, in the order of
     * their ids.
     */
    readonly match: (tenant: string, type: string) => ReadonlyArray<RoutableEndpoint>
    /**
     * Returns ids of the tenant's endpoints without a readable configuration: they may want any
     * type.
     */
    readonly unreadable: (tenant: string) => ReadonlyArray<string>
    /**
     * True while plans may be based on this directory: it is less than 10 s behind the bucket.
     * False from a reconnect until everything has been read again, and while the watch is behind
     * the leader or the leader does not answer.
     */
    readonly isCurrent: () => boolean
    /** Waits until the directory is current; returns at once if it is. */
    readonly current: Effect.Effect<void>
    /**
     * While the directory is current: the revision of the bucket up to which all changes are known
     * here. No later change is.
     */
    readonly revision: () => number
    /** Changes whenever an endpoint or settings of a tenant or the system change. */
    readonly version: () => number
    readonly standing: (
      delivery: Delivery
    ) => Effect.Effect<Standing, BrokerError | EndpointUnreadable>
    /** Returns the endpoint if memory alone tells that it accepts the delivery. */
    readonly liveNow: (delivery: Delivery, key?: string) => LiveEndpoint | undefined
    readonly find: (key: string) => LiveEndpoint | undefined
    /**
     * Returns what is known of an endpoint at the cost of one look-up, where `find` may have to decode
     * its configuration. For what looks at many endpoints again and again.
     */
    readonly outline: (key: string) => EndpointOutline | undefined
    /**
     * Returns the names of the publisher's headers that any endpoint of the tenant gets, in lower
     * case: those that its tenant names first. Undefined for none.
     */
    readonly forwardable: (tenant: string) => ReadonlyArray<string> | undefined
    /** The endpoints that share a host, where its requests are capped. */
    readonly hosts: Pick<HostIndex, "of">
    /** Returns the number of tenants that have endpoints. */
    readonly tenantCount: () => number
    /** Returns the tenants that have endpoints, in no order. */
    readonly tenants: () => Iterable<string>
    /** Keys of disabled and suspended endpoints. */
    readonly givenUp: () => ReadonlyArray<string>
    /** Calls the listener until the returned function is called. */
    readonly onUnavailable: (listener: UnavailableListener) => () => void
  }
>()("petrel/endpoints/Directory") {
  /** Ready when all endpoints have been read once. */
  static readonly layer = Layer.effect(
    Directory,
    Effect.suspend(() => open())
  )
}

const open = Effect.fnUntraced(function* () {
  const broker = yield* Broker
  const bucket = broker.names.buckets.endpoints
  const table = new DirectoryTable()
  const listeners = new Set<UnavailableListener>()
  const { current, isCurrent, revision } = yield* keepReading(table, (key) => {
    const [tenant = "", endpoint = ""] = key.split(".")
    for (const listener of listeners) listener(tenant, endpoint)
  })

  const readFromLeader = Effect.fnUntraced(function* (key: string) {
    const entry = yield* readValue(bucket, key).pipe(Effect.provideService(Broker, broker))
    if (entry === undefined) return undefined
    const config = yield* Effect.fromResult(decodeEndpoint(key, entry.string()))
    return makeLive(key, config, entry.revision, table.settingsOf(config.tenant))
  })

  const liveNow = (delivery: Delivery, key = endpointKey(delivery.tenant, delivery.endpoint)) => {
    const known = table.find(key)
    const isSure = known !== undefined && known.revision >= delivery.revision
    return isSure && isLive(known, delivery) ? known : undefined
  }

  const standing = (delivery: Delivery) => {
    const key = endpointKey(delivery.tenant, delivery.endpoint)
    return table.revisionOf(key) >= delivery.revision
      ? Effect.sync(() => judge(table.find(key), delivery))
      : Effect.map(readFromLeader(key), (current) => judge(current, delivery))
  }

  return Directory.of({
    match: (tenant, type) => table.match(tenant, type),
    unreadable: (tenant) => table.unreadable(tenant),
    isCurrent,
    current,
    revision,
    version: () => table.version,
    find: (key) => table.find(key),
    outline: (key) => table.outline(key),
    tenantCount: () => table.tenantCount,
    tenants: () => table.tenants,
    givenUp: () => table.givenUp(),
    forwardable: (tenant) => table.forwardable(tenant),
    hosts: table.hosts,
    liveNow,
    standing,
    onUnavailable: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
  })
})

const isSame = ({ config }: LiveEndpoint, delivery: Delivery): boolean =>
  config.generation === delivery.generation

const isLive = (endpoint: LiveEndpoint, delivery: Delivery): boolean =>
  isSame(endpoint, delivery) && endpoint.config.disabled === undefined

const judge = (endpoint: LiveEndpoint | undefined, delivery: Delivery): Standing =>
  endpoint === undefined || !isSame(endpoint, delivery)
    ? { _tag: "Removed" }
    : { _tag: isLive(endpoint, delivery) ? "Live" : "Disabled", endpoint }
