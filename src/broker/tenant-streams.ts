import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream"
import { JetStreamApiError, jetstreamManager } from "@nats-io/jetstream"
import { Effect } from "effect"
import type { Names } from "../domain/names.ts"
import { Broker } from "./broker.ts"
import { ifFound, streamNotFound } from "./broker-error.ts"
import { natsClients } from "./clients.ts"
import { TopologyError } from "./installed.ts"
import { mebibytes } from "./reservation.ts"
import { readReservations, reservableBytes } from "./storage-limits.ts"
import type { WantedStream } from "./topology.ts"

/**
 * Older servers accept events whose publisher sets `Nats-Stream-Source`, the header by which they
 * find after a restart where each source resumes. A tenant could make another tenant's source skip
 * events.
 */
const oldestServer = [2, 15] as const

/** Time-out of a request to another account, ms. */
const answerWithinMs = 5_000

/** True for a broker on which EVENTS can be sourced from other streams besides being published to. */
export const isSourceServer = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major > oldestServer[0] || (major === oldestServer[0] && minor >= oldestServer[1])
}

/** Fails if the broker is too old to isolate tenants whose streams EVENTS is sourced from. */
export const checkSourceServer = Effect.gen(function* () {
  const { server } = yield* Broker
  const { version = "0" } = server()
  if (isSourceServer(version)) return
  return yield* new TopologyError({
    message: `--tenant-streams needs nats-server ${oldestServer.join(".")} or newer, and this is ${version}: older ones let a publisher say that its event came from another's stream`
  })
})

/**
 * Runs `ensure` with the JetStream of a tenant's account.
 *
 * @param ensure creates or updates the tenant's stream.
 */
export const inAccountOf = Effect.fnUntraced(function* <A, E, R>(
  tenant: string,
  ensure: (jsm: JetStreamManager) => Effect.Effect<A, E, R>
) {
  const { connection, names } = yield* natsClients
  const apiPrefix = names.subjects.tenantApi(tenant)
  const jsm = yield* Effect.promise(() =>
    jetstreamManager(connection, { apiPrefix, checkAPI: false, timeout: answerWithinMs })
  )
  yield* Effect.tryPromise({
    try: () => jsm.getAccountInfo(),
    catch: (cause) =>
      new TopologyError({
        message: `the account of ${tenant} does not answer on ${apiPrefix}.> (${saysOf(cause)}): let it export "$JS.API.>" to this account, import that here with the prefix ${apiPrefix}, and give it jetstream, as nats.conf shows; then run init again`
      })
  })
  return yield* ensure(jsm)
})

/**
 * Fails if the account of a tenant has too little storage left for its stream. The broker refuses the
 * stream as if its servers were full.
 */
export const checkTenantSpace = Effect.fnUntraced(function* (
  tenant: string,
  { max_bytes = 0, name, num_replicas: copies = 1 }: WantedStream
) {
  const { ask } = yield* natsClients
  yield* inAccountOf(
    tenant,
    Effect.fnUntraced(function* (jsm) {
      const look = ask(`look at stream ${name}`, () => jsm.streams.info(name))
      const has = (yield* ifFound(look, streamNotFound))?.config.max_bytes ?? 0
      const storage = yield* readReservations(copies, jsm)
      const left = reservableBytes(storage, copies)
      if (left === undefined || max_bytes - has <= left) return
      const counted = storage.isTier ? 1 : copies
      const each = counted === 1 ? "" : `, ${counted} times as each copy counts`
      return yield* new TopologyError({
        message: `the account of ${tenant} may store ${mebibytes(storage.limit ?? 0)} and has too little left for its stream, which is to take ${mebibytes(max_bytes)}${each}: raise its max_file to ${mebibytes((storage.limit ?? 0) + (max_bytes - has - left) * counted)} in the broker's configuration, or choose less with \`petrel init --tenant-bytes\``
      })
    })
  )
})

const saysOf = (cause: unknown): string =>
  cause instanceof JetStreamApiError
    ? cause.message
    : cause instanceof Error && cause.name === "TimeoutError"
      ? `no answer within ${answerWithinMs / 1_000} s`
      : "nobody has that subject"

/**
 * Returns those of the tenants with a stream from which EVENTS does not copy, as somebody has taken it
 * out of the sources.
 *
 * @param events the configuration of EVENTS; undefined if it is not known.
 */
export const tenantsWithoutSource = (
  { tenantEvents }: Names,
  events: Pick<WantedStream, "sources"> | undefined,
  tenants: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const sources = new Set(events?.sources?.map(({ name }) => name))
  return events === undefined ? [] : tenants.filter((tenant) => !sources.has(tenantEvents(tenant)))
}

/** Returns how long ago each tenant's stream was last active, ns; negative if it never was. */
const heardAgo = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { sources = [] } = yield* streamInfo(`look at ${names.events}`, names.events)
  return new Map(
    sources.flatMap(({ active, name }) => {
      const tenant = names.tenantOf(name)
      return tenant === undefined ? [] : [[tenant, active] as const]
    })
  )
})

/**
 * Returns the tenants from whose streams EVENTS receives nothing, 4 s after it last heard of another
 * one: the broker begins to copy from hundreds one after the other. Even a stream without events
 * sends a heartbeat each second, so the delivery subject is not imported. `pending` are those from
 * which the broker has yet to begin to copy: with more than some 80, nats-server 2.15 begins with the
 * rest 40 s after its start.
 */
export const unheardTenants = Effect.gen(function* () {
  let before = yield* heardAgo
  const unheard = new Set(before.keys())
  for (let left = 16; unheard.size > 0 && left > 0; left--) {
    yield* Effect.sleep("250 millis")
    const silent = unheard.size
    const now = yield* heardAgo
    for (const [tenant, ago] of now) {
      // The request to the source counts as activity, once.
      const last = before.get(tenant) ?? -1
      if (last >= 0 && ago < last) unheard.delete(tenant)
    }
    if (unheard.size < silent) left = 16
    before = now
  }
  const isPending = (tenant: string) => (before.get(tenant) ?? -1) < 0
  return {
    unheard: [...unheard].filter((tenant) => !isPending(tenant)).sort(),
    pending: [...unheard].filter(isPending).sort()
  }
})

/**
 * Removes the subjects from an EVENTS stream that accepts publishes, so that another stream can
 * take them. Its messages stay. Until the other stream exists, the broker rejects publishes.
 */
export const releaseSubjects = Effect.fnUntraced(function* (events: WantedStream) {
  const { ask, jsm, names, streamInfo } = yield* natsClients
  const info = yield* ifFound(
    streamInfo(`look at stream ${events.name}`, events.name),
    streamNotFound
  )
  const { subjects = [] } = (info?.config ?? {}) satisfies Partial<StreamConfig>
  if (info === undefined || subjects.length === 0) return
  yield* ask(`take the subjects from ${events.name}`, () =>
    jsm.streams.update(events.name, {
      ...info.config,
      subjects: [names.subjects.removed(events.name)]
    })
  )
})
