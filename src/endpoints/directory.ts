import { Context, Effect, Layer } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { readValue } from "../broker/values.ts"
import type { Delivery } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { ListedEndpoint } from "./directory-table.ts"
import { DirectoryTable } from "./directory-table.ts"
import { keepReading } from "./directory-watch.ts"
import type { EndpointUnreadable } from "./endpoint-value.ts"
import { decodeEndpoint } from "./endpoint-value.ts"
import type { LiveEndpoint } from "./live-endpoint.ts"
import { makeLive } from "./live-endpoint.ts"

export type { ListedEndpoint } from "./directory-table.ts"
export type { LiveEndpoint } from "./live-endpoint.ts"

/** What an endpoint is to a delivery that was routed to it. */
export type Standing =
  | { readonly _tag: "Live"; readonly endpoint: LiveEndpoint }
  | { readonly _tag: "Disabled"; readonly endpoint: LiveEndpoint }
  | { readonly _tag: "Removed" }

/** Told when an endpoint is disabled, removed, or replaced by another of its name. */
export type UnavailableListener = (tenant: string, endpoint: string) => void

/**
 * All endpoints, kept current by a watch on their bucket. Matching reads memory only; a delivery
 * that knows more than the watch has seen sends its reader to the leader.
 */
export class Directory extends Context.Service<
  Directory,
  {
    /** Endpoints of the tenant that want the type, disabled ones included, in the order of their ids. */
    readonly match: (tenant: string, type: string) => ReadonlyArray<ListedEndpoint>
    /** Ids of the tenant's endpoints whose configuration nobody can read: they may want anything. */
    readonly unreadable: (tenant: string) => ReadonlyArray<string>
    /**
     * Whether what is known here may be planned by: it is less than 10 s behind the bucket. Not from a
     * reconnect until all has been read again, nor while the watch is behind the leader or the leader
     * does not answer.
     */
    readonly isCurrent: () => boolean
    /** Waits until it may; at once while it may. */
    readonly current: Effect.Effect<void>
    /** Revision of the bucket up to which all changes are known here, and none beyond, while it is current. */
    readonly revision: () => number
    /** Another one whenever an endpoint has changed. */
    readonly version: () => number
    readonly standing: (
      delivery: Delivery
    ) => Effect.Effect<Standing, BrokerError | EndpointUnreadable>
    /** The endpoint, where nobody need be asked to know that it takes the delivery. */
    readonly liveNow: (delivery: Delivery, key?: string) => LiveEndpoint | undefined
    readonly find: (key: string) => LiveEndpoint | undefined
    /** The keys of those that are disabled. */
    readonly disabled: () => ReadonlyArray<string>
    /** Calls the listener until the returned function is called. */
    readonly onUnavailable: (listener: UnavailableListener) => () => void
  }
>()("petrel/delivery/Directory") {
  /** Ready when every endpoint has been read once. */
  static readonly layer = Layer.effect(
    Directory,
    Effect.suspend(() => open())
  )
}

const open = Effect.fnUntraced(function* () {
  const broker = yield* Broker
  const bucket = yield* broker.bucket(broker.names.buckets.endpoints)
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
    return makeLive(key, config, entry.revision)
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
    disabled: () => table.disabled(),
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
