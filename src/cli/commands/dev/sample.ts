import { randomUUID } from "node:crypto"
import { Clock, Effect, Option, Schema } from "effect"
import { Broker } from "../../../broker/broker.ts"
import type { Endpoint } from "../../../domain/endpoint.ts"
import { RetryPolicy } from "../../../domain/retry-policy.ts"
import {
  addEndpoint,
  changeEndpoint,
  getEndpoint,
  listEndpoints
} from "../../../endpoints/endpoint-store.ts"
import { generateSecret } from "../../../endpoints/signing.ts"
import { blankEndpoint } from "../../../operations/endpoints/endpoint-change.ts"
import type { ReceivedRequest } from "../receive/server.ts"
import { receiveRequests } from "../receive/server.ts"

/** The endpoint that `petrel dev` creates on an empty store as a demonstration. */
export const sample = { tenant: "default", id: "sample" } as const

const events = [
  { id: "default.user-7", type: "user.created", body: { user: 7 } },
  { id: "default.order-17", type: "order.placed", body: { order: 17, fail: 1 } },
  { id: "default.invoice-42", type: "invoice.paid", body: { invoice: 42, fail: 2 } }
] as const

/** Author of changes of the sample endpoint, as the history records it. */
export const sampleBy = "petrel dev"

/** The ids of the events that `publishSamples` publishes. */
export const sampleIds: ReadonlySet<string> = new Set(events.map(({ id }) => id))

const sampleUrl = (port: number) => `http://127.0.0.1:${port}/sample`
const portOf = (url: string): number | undefined => {
  const port = /^http:\/\/127\.0\.0\.1:(\d+)\/sample$/.exec(url)?.[1]
  return port === undefined ? undefined : Number(port)
}

const Wish = Schema.fromJsonString(Schema.Struct({ fail: Schema.Int }))
const decodeWish = Schema.decodeUnknownOption(Wish)

/**
 * Returns the status of an answer. An event whose body contains `"fail": n` is refused n times. All
 * other requests succeed.
 */
const statusFor = ({ body, headers }: ReceivedRequest): number => {
  const wish = decodeWish(body.toString())
  const attempt = Number(headers["petrel-attempt"])
  return Option.isSome(wish) && attempt <= wish.value.fail ? 503 : 200
}

/** Receives the sample's events on a port. */
const listen = (port: number) =>
  receiveRequests({ host: "127.0.0.1", port }, (request) => request.respond(statusFor(request), {}))

/** Starts the receiver, on its former port if that is free. */
const receive = (before: number | undefined) =>
  before === undefined ? listen(0) : Effect.catch(listen(before), () => listen(0))

/** Delays short enough to watch. */
const retry = Schema.decodeSync(RetryPolicy)({
  backoff: { kind: "exponential", base: "1 second", factor: 2, cap: "10 seconds" },
  jitter: "equal",
  maxAttempts: 8,
  window: "10 minutes"
})

const makeSample = Effect.fnUntraced(function* (url: string) {
  const now = yield* Clock.currentTimeMillis
  return {
    ...blankEndpoint(sample, randomUUID(), now),
    url,
    secrets: [{ value: yield* generateSecret("standard"), createdAt: now }],
    retry
  } satisfies Endpoint
})

const isUnused = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the events", names.events)
  const endpoints = yield* listEndpoints()
  return (
    state.last_seq === 0 &&
    endpoints.every(({ endpoint: { id, tenant } }) => tenant === sample.tenant && id === sample.id)
  )
})

/**
 * Runs the sample's receiver until the scope closes. Creates the sample endpoint if nothing was
 * ever published and there is no other endpoint. Updates its URL if the receiver cannot use its old
 * port. A sample that was removed or given another URL is left unchanged.
 *
 * @returns undefined if there is no sample; `first` if its events have not been published yet.
 */
export const serveSample = Effect.gen(function* () {
  const first = yield* isUnused
  const stored = yield* getEndpoint(sample.tenant, sample.id).pipe(
    Effect.catchTag("EndpointNotFound", () => Effect.succeed(undefined))
  )
  const before = stored === undefined ? undefined : portOf(stored.endpoint.url)
  if (stored === undefined ? !first : before === undefined) return undefined
  const port = yield* receive(before)
  const url = sampleUrl(port)
  if (stored === undefined) yield* addEndpoint(yield* makeSample(url), sampleBy)
  else if (port !== before) {
    const now = yield* Clock.currentTimeMillis
    const change = (endpoint: Endpoint) => Effect.succeed({ ...endpoint, url, updatedAt: now })
    yield* changeEndpoint(sample.tenant, sample.id, change, { by: sampleBy })
  }
  return { url, first }
})

/** Publishes the sample events. When repeated after a crash, the broker discards duplicates. */
export const publishSamples = Effect.gen(function* () {
  const { names, publish } = yield* Broker
  yield* Effect.forEach(
    events,
    ({ body, id, type }) =>
      publish(`${names.eventRoot}.${sample.tenant}.${type}`, JSON.stringify(body), [
        ["Nats-Msg-Id", id],
        ["content-type", "application/json"]
      ]),
    { discard: true }
  )
})
