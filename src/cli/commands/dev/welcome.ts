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
import { bytesText } from "../../../text/quantities.ts"
import { type ReceivedRequest, receiveRequests } from "../receive/receiver.ts"
import type { DevConsole, DevToken } from "./console.ts"

/** The texts that `petrel dev` prints about itself. */
interface Welcome {
  /** Printed when it accepts events. */
  readonly ready: ReadonlyArray<string>
  /** The next steps. Printed after the sample events, if there are any. */
  readonly next: ReadonlyArray<string>
}

const defaultUrl = "nats://127.0.0.1:4222"

/**
 * How a shell runs this program: by name where it was installed for all, else by npx.
 *
 * @param path of the program, as the process was told it.
 */
export const shellCommand = (path = ""): string => {
  const [program, ...folders] = path.split(/[/\\]/).toReversed()
  const isGlobal = program === "petrel" && folders[0] !== ".bin"
  return isGlobal ? "petrel" : "npx petrel"
}

/** Returns the texts for an installation. */
export const welcome = (options: {
  readonly nats: string
  /** The file of the broker's token, and the broker's address for a shell. */
  readonly token: Pick<DevToken, "file" | "shellUrl"> | undefined
  readonly data: string
  /** Size of the store, and the events' part of it, in bytes. */
  readonly store: number
  readonly eventBytes: number
  readonly eventRoot: string
  readonly console: DevConsole
  readonly sample: { readonly first: boolean } | undefined
  /** Where the worker's numbers are served. */
  readonly metrics?: string | undefined
}): Welcome => {
  const program = shellCommand(process.argv[1])
  const { console, data, eventBytes, eventRoot, metrics, nats, sample, store, token } = options
  const events = eventBytes < 0 ? "" : `, ${bytesText(eventBytes)} of them for events`
  const body = sample === undefined ? `'{"invoice":43}'` : `'{"invoice":43,"fail":1}'`
  return {
    ready: [
      `Petrel takes events at ${nats} and keeps everything in ${data}. Ctrl-C stops it.`,
      `It may fill ${bytesText(store)} of the disk${events} (--store).`,
      token === undefined
        ? "Everybody on this machine may read and change all of it, secrets too, unless it is started with --token."
        : `It asks its clients for the token in ${token.file}.`,
      ...(console.login === undefined
        ? []
        : ["See every delivery in a browser (this link logs in once):", `  ${console.login}`]),
      `Its HTTP API is at ${console.address} (${console.address}/docs shows it), with the token in ${console.tokenFile}.`,
      ...(metrics === undefined ? [] : [`Its numbers are at ${metrics}.`]),
      "",
      ...(sample?.first === true
        ? [
            "Three events of different types go to a sample endpoint, default/sample. Its receiver",
            "refuses two of them at first, so that you see what happens then:",
            ""
          ]
        : [])
    ],
    next: [
      ...(sample?.first === true ? [""] : []),
      "To publish an event of your own, in another terminal:",
      ...(token === undefined
        ? nats === defaultUrl
          ? []
          : [`  export NATS_URL=${nats}`]
        : [`  export NATS_URL=${token.shellUrl(nats)}`]),
      `  ${program} publish default invoice.paid ${body}`,
      `  nats pub ${eventRoot}.default.invoice.paid ${body}`,
      `  curl ${console.address}/v1/tenants/default/raw-events/invoice.paid --json ${body} \\`,
      `    -H ${console.shellHeader}`,
      ...(sample === undefined
        ? []
        : ['The sample receiver refuses an event "fail" times before it takes it.']),
      "To send events to a receiver of your own:",
      `  ${program} endpoint add default/mine --url http://127.0.0.1:3000/hooks`,
      `To look back: ${program} history, ${program} dead list. What happens appears here:`,
      ""
    ]
  }
}

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
