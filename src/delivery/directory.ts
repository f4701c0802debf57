import type { KvWatchEntry } from "@nats-io/kv"
import { Context, Deferred, Duration, Effect, Layer, Result, Stream } from "effect"

import { Broker, BrokerError } from "../broker/connection.ts"
import { readValue } from "../broker/values.ts"
import type { Delivery } from "../domain/delivery.ts"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import { TypeIndex } from "../domain/type-filter.ts"
import type { RetrySchedule } from "../policy/backoff.ts"
import { toSchedule } from "../policy/backoff.ts"
import { resolveRetry } from "../policy/presets.ts"
import type { EndpointUnreadable } from "./endpoint-store.ts"
import { decodeEndpoint, endpointKey } from "./endpoint-store.ts"
import type { Target } from "./redirect.ts"
import { targetOf } from "./redirect.ts"
import type { Signer } from "./signing.ts"
import { makeSigner } from "./signing.ts"

const defaultTimeout = 30_000

/** An endpoint's configuration made ready for use. Durations in ms. */
export interface LiveEndpoint {
  readonly key: string
  readonly config: Endpoint
  readonly revision: number
  readonly policy: RetryPolicy
  readonly window: number
  readonly timeout: number
  readonly retryAfterCap: number
  readonly target: Target
  /** Names and values in turn. */
  readonly ownHeaders: ReadonlyArray<string>
  /** Made on first use: most of many endpoints are idle. */
  readonly signer: () => Signer
  readonly schedule: () => RetrySchedule
}

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
    readonly match: (tenant: string, type: string) => ReadonlyArray<LiveEndpoint>
    /** Ids of the tenant's endpoints whose configuration nobody can read: they may want anything. */
    readonly unreadable: (tenant: string) => ReadonlyArray<string>
    readonly standing: (
      delivery: Delivery
    ) => Effect.Effect<Standing, BrokerError | EndpointUnreadable>
    /** The endpoint, where nobody need be asked to know that it takes the delivery. */
    readonly liveNow: (delivery: Delivery) => LiveEndpoint | undefined
    readonly find: (key: string) => LiveEndpoint | undefined
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
  const state = new DirectoryState()
  const listeners = new Set<UnavailableListener>()
  yield* keepReading(state, (key) => {
    const [tenant = "", endpoint = ""] = key.split(".")
    for (const listener of listeners) listener(tenant, endpoint)
  })

  const readFromLeader = Effect.fnUntraced(function* (key: string) {
    const entry = yield* readValue(bucket, key).pipe(Effect.provideService(Broker, broker))
    if (entry === undefined) return undefined
    return prepare(key, yield* decodeEndpoint(key, entry.string()), entry.revision)
  })

  const liveNow = (delivery: Delivery) => {
    const known = state.find(endpointKey(delivery.tenant, delivery.endpoint))
    const sure = known !== undefined && known.revision >= delivery.revision
    return sure && isLive(known, delivery) ? known : undefined
  }

  const standing = (delivery: Delivery) => {
    const key = endpointKey(delivery.tenant, delivery.endpoint)
    const known = state.find(key)
    return (known?.revision ?? state.removedAt(key) ?? 0) >= delivery.revision
      ? Effect.succeed(judge(known, delivery))
      : Effect.map(readFromLeader(key), (current) => judge(current, delivery))
  }

  return Directory.of({
    match: (tenant, type) => state.match(tenant, type),
    unreadable: (tenant) => state.unreadable(tenant),
    find: (key) => state.find(key),
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

const lazy = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

const prepare = (key: string, config: Endpoint, revision: number): LiveEndpoint => {
  const policy = Result.getOrThrow(resolveRetry(config.retry))
  const timeout = config.timeout ?? policy.timeout
  return {
    key,
    config,
    revision,
    policy,
    target: targetOf(config.url),
    ownHeaders: Object.entries(config.headers).flat(),
    window: Duration.toMillis(policy.window),
    timeout: timeout === undefined ? defaultTimeout : Duration.toMillis(timeout),
    retryAfterCap: Duration.toMillis(policy.retryAfterCap),
    signer: lazy(() =>
      Effect.runSync(
        makeSigner({
          scheme: config.sign,
          secrets: config.secrets,
          signatureHeader: config.signatureHeader
        })
      )
    ),
    schedule: lazy(() => toSchedule(policy))
  }
}

/** The endpoints in memory: by key, and by the types they want. */
class DirectoryState {
  readonly #endpoints = new Map<string, LiveEndpoint>()
  readonly #removed = new Map<string, number>()
  readonly #tenants = new Map<string, TypeIndex<LiveEndpoint>>()
  /** By tenant, ids of endpoints of which no readable configuration was ever seen. */
  readonly #unreadable = new Map<string, Set<string>>()

  find(key: string): LiveEndpoint | undefined {
    return this.#endpoints.get(key)
  }

  removedAt(key: string): number | undefined {
    return this.#removed.get(key)
  }

  match(tenant: string, type: string): ReadonlyArray<LiveEndpoint> {
    const found = this.#tenants.get(tenant)?.match(type)
    if (found === undefined) return []
    return [...found.values()].sort((a, b) => (a.config.id < b.config.id ? -1 : 1))
  }

  unreadable(tenant: string): ReadonlyArray<string> {
    return [...(this.#unreadable.get(tenant) ?? [])]
  }

  /** What is known of an endpoint from before goes on holding. */
  cannotRead(key: string): void {
    if (this.#endpoints.has(key)) return
    const [tenant = "", id = ""] = key.split(".")
    const ids = this.#unreadable.get(tenant) ?? new Set()
    this.#unreadable.set(tenant, ids.add(id))
  }

  put(endpoint: LiveEndpoint): void {
    const { key, config } = endpoint
    this.#unreadable.get(config.tenant)?.delete(config.id)
    this.#unindex(key)
    this.#endpoints.set(key, endpoint)
    this.#removed.delete(key)
    let index = this.#tenants.get(config.tenant)
    if (index === undefined) {
      index = new TypeIndex()
      this.#tenants.set(config.tenant, index)
    }
    index.add(key, config.types, endpoint)
  }

  remove(key: string, revision: number): void {
    const [tenant = "", id = ""] = key.split(".")
    this.#unreadable.get(tenant)?.delete(id)
    this.#unindex(key)
    this.#endpoints.delete(key)
    this.#removed.set(key, revision)
  }

  /** Keys that a complete reading did not mention. */
  absent(seen: ReadonlySet<string>): ReadonlyArray<string> {
    return [...this.#endpoints.keys()].filter((key) => !seen.has(key))
  }

  revisionOf(key: string): number {
    return this.#endpoints.get(key)?.revision ?? this.#removed.get(key) ?? 0
  }

  #unindex(key: string): void {
    const old = this.#endpoints.get(key)
    if (old !== undefined) this.#tenants.get(old.config.tenant)?.remove(key, old.config.types)
  }
}

/**
 * Watches the bucket for as long as the scope lives. After a reconnect everything is read again:
 * a watch can miss what happened meanwhile. Returns when the first reading is complete.
 */
const keepReading = Effect.fnUntraced(function* (
  state: DirectoryState,
  unavailable: (key: string) => void
) {
  const { ask, bucket, jsm, names, onReconnect } = yield* Broker
  const complete = yield* Deferred.make<void>()
  const name = names.buckets.endpoints

  const apply = Effect.fnUntraced(function* (entry: KvWatchEntry) {
    if (entry.revision <= state.revisionOf(entry.key)) return
    if (entry.operation !== "PUT") {
      state.remove(entry.key, entry.revision)
      unavailable(entry.key)
      return
    }
    const decoded = yield* Effect.result(decodeEndpoint(entry.key, entry.string()))
    if (Result.isFailure(decoded)) {
      yield* Effect.logError(decoded.failure.message)
      state.cannotRead(entry.key)
      return
    }
    const before = state.find(entry.key)
    const endpoint = prepare(entry.key, decoded.success, entry.revision)
    state.put(endpoint)
    const replaced = before !== undefined && before.config.generation !== endpoint.config.generation
    if (replaced || endpoint.config.disabled !== undefined) unavailable(entry.key)
  })

  const readOnce = Effect.scoped(
    Effect.gen(function* () {
      const kv = yield* bucket(name)
      const info = yield* ask(`look at ${name}`, () => jsm.streams.info(`KV_${name}`))
      const watch = yield* Effect.acquireRelease(
        ask(`watch ${name}`, () => kv.watch()),
        (iterator) => Effect.sync(() => iterator.stop())
      )
      const again = yield* Deferred.make<void>()
      const forget = onReconnect(() => Deferred.doneUnsafe(again, Effect.void))
      yield* Effect.addFinalizer(() => Effect.sync(forget))
      const seen = new Set<string>()
      let reading = true
      const finish = Effect.suspend(() => {
        reading = false
        for (const key of state.absent(seen)) {
          state.remove(key, info.state.last_seq)
          unavailable(key)
        }
        return Deferred.succeed(complete, undefined)
      })
      if (info.state.messages === 0) yield* finish
      const entries = Stream.fromAsyncIterable(
        watch,
        (cause) => new BrokerError({ operation: `watch ${name}`, cause })
      )
      const follow = Stream.runForEach(entries, (entry) =>
        Effect.gen(function* () {
          yield* apply(entry)
          if (!reading) return
          seen.add(entry.key)
          if (entry.delta === 0) yield* finish
        })
      )
      yield* Effect.raceFirst(follow, Deferred.await(again))
    })
  )

  yield* readOnce.pipe(
    Effect.catch((error) =>
      Effect.andThen(
        Effect.logWarning("reading the endpoints failed", { why: error.message }),
        Effect.sleep("1 second")
      )
    ),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Deferred.await(complete)
})
