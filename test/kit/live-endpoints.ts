import { assert } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import type { EndpointJson } from "../../src/domain/endpoint.ts"
import { Endpoint } from "../../src/domain/endpoint.ts"
import { disableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { changeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { eventually, publish } from "./engine.ts"
import type { Received, Receiver } from "./receiver.ts"

const decode = Schema.decodeUnknownSync(Endpoint)
const encode = Schema.encodeSync(Endpoint)

/** Changes an endpoint of acme like `petrel endpoint set`. */
export const change = (id: string, changes: Partial<EndpointJson>) =>
  changeEndpoint("acme", id, (found) => Effect.succeed(decode({ ...encode(found), ...changes })))

/** Disables an endpoint of acme like `petrel endpoint disable`. */
export const disable = (id: string) =>
  disableEndpoint({ tenant: "acme", endpoint: id }, "asked to", "cli")

/** Writes to the bucket like `nats kv put`. */
export const writeByHand = (key: string, value: string) =>
  Effect.gen(function* () {
    const { ask, bucket, names } = yield* natsClients
    const kv = yield* bucket(names.buckets.endpoints)
    return yield* ask("put", () => kv.put(key, value))
  })

/** Reads a key of the bucket. */
export const readByHand = (key: string) =>
  Effect.gen(function* () {
    const { ask, bucket, names } = yield* natsClients
    const kv = yield* bucket(names.buckets.endpoints)
    const entry = yield* ask("get", () => kv.get(key))
    return entry?.string() ?? ""
  })

/** Publishes events until one arrives as expected, since changes take a moment to apply. */
export const publishUntil = (
  { requests }: Receiver,
  type: string,
  holds: (request: Received) => boolean
) =>
  Effect.gen(function* () {
    const before = requests.length
    const start = yield* Clock.currentTimeMillis
    yield* eventually(publish(type), () => requests.slice(before).some(holds))
    assert.isBelow((yield* Clock.currentTimeMillis) - start, 5_000)
  })
