/* A broker with an installation of Petrel and endpoints, as needed by scenarios. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Schema, Scope } from "effect"
import { Broker } from "../src/broker/broker.ts"
import { natsClients } from "../src/broker/clients.ts"
import { connectTo } from "../src/broker/connection.ts"
import { startEmbedded } from "../src/broker/embedded/embedded.ts"
import { init } from "../src/broker/init.ts"
import type { HeaderList, PublishError } from "../src/broker/publication.ts"
import { sharesOf } from "../src/broker/storage-limits.ts"
import { defaultTopology } from "../src/broker/topology.ts"
import type { EndpointJson } from "../src/domain/endpoint.ts"
import { Endpoint } from "../src/domain/endpoint.ts"

const makeDirectory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-bench-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/**
 * Starts a broker in a directory of its own, until the scope closes.
 *
 * @param store size of its store, bytes. (Default: no limit)
 */
export const startEmptyBroker = Effect.fnUntraced(function* (store?: number) {
  const dataDir = yield* makeDirectory
  return yield* startEmbedded({ port: 0, dataDir, maxStore: store })
})

/** Starts such a broker with an installation. The limits of its streams follow from its store. */
export const startBroker = Effect.fnUntraced(function* (store?: number) {
  const { pid, url } = yield* startEmptyBroker(store)
  const shares = store === undefined ? {} : sharesOf(store)
  yield* Effect.provide(init({ ...defaultTopology, ...shares }), connectTo({ url }))
  return { pid, url }
})

/**
 * Starts a broker with an installation that can be stopped and started again: then it has nothing of
 * its streams in memory.
 *
 * @param store size of its store, bytes.
 */
export const startBrokerToRestart = Effect.fnUntraced(function* (store: number) {
  const dataDir = yield* makeDirectory
  const first = yield* Scope.make()
  const start = (port: number) => startEmbedded({ port, dataDir, maxStore: store })
  const { pid, url } = yield* Effect.provideService(start(0), Scope.Scope, first)
  yield* Effect.addFinalizer((exit) => Scope.close(first, exit))
  const layout = { ...defaultTopology, ...sharesOf(store) }
  yield* Effect.provide(init(layout), connectTo({ url }))
  const restart = Effect.andThen(
    Scope.close(first, Exit.void),
    Effect.suspend(() => start(Number(new URL(url).port)))
  )
  return { pid, url, restart }
})

/** A message to store. */
export interface Message {
  readonly subject: string
  readonly body: string
  readonly headers: HeaderList
}

/** Stores messages concurrently: one after the other would take most of the time. */
export const storeAll = Effect.fnUntraced(function* (
  count: number,
  make: (number: number) => Message
) {
  const { publisher } = yield* natsClients
  let made = 0
  const loop = Effect.callback<void, PublishError>((resume) => {
    const more = () => {
      if (made >= count) return resume(Effect.void)
      const { body, headers, subject } = make(made++)
      publisher.send(subject, body, headers, (result) =>
        result instanceof Error ? resume(Effect.fail(result)) : more()
      )
    }
    more()
  })
  yield* Effect.all(
    Array.from({ length: 1_000 }, () => loop),
    { concurrency: "unbounded" }
  )
})

/** The settings of an endpoint that differ from the defaults. */
export type EndpointChoice = Pick<EndpointJson, "id" | "url" | "types"> & Partial<EndpointJson>

const decode = Schema.decodeUnknownSync(Endpoint)
const encode = Schema.encodeSync(Endpoint)
const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`

/** Returns what `petrel endpoint add` stores, with its defaults. */
const configuration = (choice: EndpointChoice): EndpointJson =>
  encode(
    decode({
      v: 1,
      tenant: "bench",
      generation: "bench",
      sign: "standard",
      secrets: [{ value: secret, createdAt: 0 }],
      retry: "default",
      maxInFlight: 10,
      redirects: 3,
      headers: {},
      createdAt: 0,
      updatedAt: 0,
      ...choice
    })
  )

/** Stores endpoints like the command line, but concurrently. */
export const addEndpoints = Effect.fnUntraced(function* (
  count: number,
  choose: (number: number) => EndpointChoice
) {
  const { names } = yield* Broker
  yield* storeAll(count, (number) => {
    const endpoint = configuration(choose(number))
    return {
      subject: `$KV.${names.buckets.endpoints}.${endpoint.tenant}.${endpoint.id}`,
      body: JSON.stringify(endpoint),
      headers: []
    }
  })
})
