import { createServer } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { Socket } from "node:net"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeHttpPlatform from "@effect/platform-node/NodeHttpPlatform"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodePath from "@effect/platform-node/NodePath"
import type { Scope } from "effect"
import { Deferred, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Etag, HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { IpNetwork } from "effect/net"
import type { Connections } from "../connections/connections.ts"
import { KnownEndpoints } from "../delivery/introspection/survey-endpoints.ts"
import { EndpointKeys } from "../endpoints/endpoint-keys.ts"
import { ListenRefused } from "../metrics/listen.ts"
import { RefusedRequests } from "../metrics/refused-requests.ts"
import { PageTurns } from "../operations/endpoints/endpoint-page.ts"
import { HistoryReadings } from "../operations/history/history-readings.ts"
import { StatusReadings } from "../operations/status/system-operations.ts"
import { LiveTokens } from "../operations/tokens/token-store.ts"
import { timers } from "../time/timers.ts"
import { accessLayer } from "./access.ts"
import { allowedHosts } from "./addresses.ts"
import { Stopping } from "./answer.ts"
import { Api } from "./api.ts"
import { CrossOrigin } from "./cors.ts"
import { docsHeaders, docsPath, docsRoute } from "./docs-page.ts"
import { apiDocument } from "./document.ts"
import { listedOperations } from "./groups.ts"
import { LiveConnections, makeApiConnections } from "./live-connections.ts"
import { metricsPath, metricsRoute } from "./metrics-route.ts"
import { middleware } from "./middleware.ts"
import { pageRoutes } from "./pages.ts"
import { rawProblem, validationLayer } from "./problems.ts"
import { RequestBodies } from "./request-body.ts"
import { RequestDurations } from "./request-durations.ts"
import { handlers } from "./routes.ts"
import { sessionPath, sessionRoutes } from "./session-routes.ts"
import { Slots } from "./tokens/caller-limits.ts"
import { beginInTurn, Turns } from "./turns.ts"

/** Where and how the API is served. */
export interface ApiOptions {
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  /** The address that clients know it by. */
  readonly publicUrl?: string | undefined
  /** Certificate and key, in PEM. (Default: without TLS) */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  /** Proxies whose X-Forwarded-For is believed. (Default: none) */
  readonly trustedProxies?: ReadonlyArray<IpNetwork.IpNetwork> | undefined
  /** Origins whose pages may ask, as `readOrigin` returns them. (Default: none) */
  readonly corsOrigins?: ReadonlyArray<string> | undefined
  /** True to serve the pages for browsers, too. (Default: false) */
  readonly hasPages?: boolean | undefined
  /** Who may use the thread. (Default: turns of its own) */
  readonly turns?: Turns | undefined
  /** How long a stop waits for requests in flight, ms. (Default: 10 s) */
  readonly stopWithin?: number | undefined
  /** How long a client may take for its headers, ms. (Default: 10 s) */
  readonly headersWithin?: number | undefined
  /** How long a client may take for a whole request, ms. (Default: 30 s) */
  readonly requestWithin?: number | undefined
  /** The time in which at least some of a body must come, ms. (Default: 4 s) */
  readonly paceMs?: number | undefined
  /** Connections at the same time. (Default: 1,024) */
  readonly maxConnections?: number | undefined
  /** Connections that have lost their place and are not closed yet. (Default: 2,048) */
  readonly maxHeldConnections?: number | undefined
  /** Bytes of bodies in memory at the same time. (Default: 128 MiB) */
  readonly bodiesBytes?: number | undefined
}

/** Time limits of a client, ms: for its headers, for a whole request, and without any progress. */
const headersWithinMs = 10_000
const requestWithinMs = 30_000
const idleMs = 60_000
/** How often these are checked, ms: whoever is late has an answer then, and hundreds at once hold up all. */
const checkedEveryMs = 200
/** How long a client has to read why its connection is closed, ms. */
const answeredWithinMs = 500
const defaultStopWithinMs = 10_000
/**
 * Connections that the kernel keeps until they are accepted, as many as Linux allows by default. Where
 * there are more, a client tries again after 1 s, then 3 s, whosever connections came before.
 */
const backlog = 4_096
/** Upper bound of a part of a path, letters: the schemas say what each may be. Node bounds headers. */
const maxParamLength = 16 * 1024

/** Answers for requests that are none, by the code of the error. */
const unparsable: Record<string, { readonly status: number; readonly detail: string }> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: "the request did not arrive in time" },
  HPE_HEADER_OVERFLOW: { status: 431, detail: "the headers are too large" }
}

/** Answers what is no request, and closes its connection. */
const refuseConnection = (connections: Connections, error: Error, socket: Socket) => {
  if (!socket.writable || connections.isAnswering(socket)) return socket.destroy()
  const code = "code" in error ? String(error.code) : ""
  const { detail, status } = unparsable[code] ?? {
    status: 400,
    detail: "this is not a readable HTTP request"
  }
  socket.end(rawProblem({ status, name: "bad-request", title: "The request is refused", detail }))
  // What the client goes on to send, or an end that it does not send, must hold nothing.
  const destroyed = timers.after(answeredWithinMs, () => socket.destroy())
  return socket.once("close", () => timers.cancel(destroyed))
}

const makeServer = (
  { headersWithin = headersWithinMs, requestWithin = requestWithinMs, tls }: ApiOptions,
  connections: Connections
) => {
  const limits = {
    headersTimeout: Math.min(headersWithin, requestWithin),
    requestTimeout: requestWithin,
    connectionsCheckingInterval: Math.min(checkedEveryMs, headersWithin, requestWithin)
  }
  const server =
    tls === undefined
      ? createServer(limits)
      : createTlsServer({ ...limits, ...tls, handshakeTimeout: headersWithin })
  server.timeout = idleMs
  server.on("clientError", (error, socket: Socket) => refuseConnection(connections, error, socket))
  connections.watch(server)
  return server
}

const answering = (isSecure: boolean) =>
  handlers.pipe(
    Layer.provide(Layer.mergeAll(accessLayer(isSecure), validationLayer, EndpointKeys.layer))
  )

/** @param publicUrl that clients know it by. Without one the document is relative to itself. */
const docs = (publicUrl = "/") => {
  // Whoever asks gets the same bytes: they need no token, and making them takes ms each time.
  let document: HttpServerResponse.HttpServerResponse | undefined
  const answer = () => {
    document ??= HttpServerResponse.jsonUnsafe(apiDocument(publicUrl))
    return document
  }
  return Layer.mergeAll(HttpRouter.add("GET", "/openapi.json", Effect.sync(answer)), docsRoute)
}

const apiRoutes = listedOperations.map(({ operation, path }) => ({
  method: operation.method.toLowerCase(),
  path
}))

const extraRoutes = [
  ...["/openapi.json", docsPath, metricsPath, sessionPath].map((path) => ({ method: "get", path })),
  ...["post", "delete"].map((method) => ({ method, path: sessionPath })),
  ...["/", "/ui", "/ui/{page}", "/ui/assets/{file}"].map((path) => ({ method: "get", path }))
]

/** True if clients ask over TLS, which this server or a proxy in front of it ends. */
const isSecureOf = ({ publicUrl, tls }: ApiOptions): boolean =>
  tls !== undefined || publicUrl?.startsWith("https:") === true

const routes = (options: ApiOptions) => {
  const isSecure = isSecureOf(options)
  const durations = new RequestDurations()
  return Layer.mergeAll(
    HttpApiBuilder.layer(Api).pipe(Layer.provide(answering(isSecure))),
    sessionRoutes(isSecure),
    ...(options.hasPages === true ? [pageRoutes] : []),
    docs(options.publicUrl),
    metricsRoute(options.host, options.publicUrl, durations),
    middleware(
      [...apiRoutes, ...extraRoutes],
      allowedHosts(options.host, options.publicUrl),
      { [docsPath]: docsHeaders },
      durations,
      options.trustedProxies ?? [],
      new CrossOrigin(options.corsOrigins)
    )
  )
}

const reasonOf = (cause: unknown): { readonly code: string; readonly message: string } => {
  const error = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const code = error instanceof Error && "code" in error ? String(error.code) : ""
  return { code, message: error instanceof Error ? error.message : String(error) }
}

/** Answers a request. It does not fail: each failure is a problem document. */
export type ApiApp = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

type Needed = HttpRouter.Request.Without<Layer.Services<ReturnType<typeof routes>>>

/**
 * What routes need of the system. Node's usual services for HTTP bring a terminal as well, and each
 * listens for the end of stdin: Node warns of a leak when a process serves six consoles.
 */
const httpServices = Layer.mergeAll(
  NodeHttpPlatform.layer,
  Etag.layerWeak,
  NodeFileSystem.layer,
  NodePath.layer
)

/** Makes what answers requests. What a middleware would need is inferred as unknown. */
const makeApp = (options: ApiOptions) =>
  HttpRouter.toHttpEffect(routes(options).pipe(Layer.provide(httpServices))) as Effect.Effect<
    ApiApp,
    never,
    Exclude<Needed, HttpRouter.HttpRouter | Layer.Success<typeof httpServices>> | Scope.Scope
  >

/**
 * Serves the API until the scope closes: requests in flight are answered first. Returns the port,
 * what answers a request, for those that come on another way (`Insider`), and what counts refusals.
 * Fails with ListenRefused if the address cannot be used.
 */
export const serveApi = Effect.fnUntraced(function* (options: ApiOptions) {
  const { bodiesBytes, maxConnections, maxHeldConnections, paceMs } = options
  const refused = yield* RefusedRequests
  const isPlain = options.tls === undefined
  const connections = makeApiConnections(refused, isPlain, maxConnections, maxHeldConnections)
  const node = makeServer(options, connections)
  const stopWithin = options.stopWithin ?? defaultStopWithinMs
  const server = NodeHttpServer.layerServer(() => node, {
    host: options.host,
    port: options.port,
    backlog,
    gracefulShutdownTimeout: stopWithin
  })
  // Closed after the requests in flight had their time, and before all connections must be gone.
  const closing = Layer.effectDiscard(
    Effect.acquireRelease(Effect.void, () => Effect.sync(() => node.closeAllConnections()))
  )
  const stopping = yield* Deferred.make<void>()
  const tokens = yield* Layer.build(LiveTokens.layer)
  const knownEndpoints = KnownEndpoints.make()
  const statusReadings = yield* Effect.provideService(
    StatusReadings.make,
    KnownEndpoints,
    knownEndpoints
  )
  const answered = yield* makeApp(options).pipe(
    Effect.provideContext(tokens),
    Effect.provideService(HttpRouter.RouterConfig, { maxParamLength }),
    Effect.provideService(Stopping, stopping),
    Effect.provideService(LiveConnections, connections),
    Effect.provideService(Slots, Slots.make(maxConnections)),
    Effect.provideService(
      RequestBodies,
      RequestBodies.make(refused, { bytes: bodiesBytes, paceMs })
    ),
    Effect.provideService(HistoryReadings, HistoryReadings.make()),
    Effect.provideService(PageTurns, PageTurns.make()),
    Effect.provideService(KnownEndpoints, knownEndpoints),
    Effect.provideService(StatusReadings, statusReadings)
  )
  const turns = options.turns ?? (yield* Turns.make)
  node.on("connection", () => turns.noteAccepted())
  const app = yield* beginInTurn(
    ...([answered, turns, connections, options.trustedProxies ?? [], isSecureOf(options)] as const)
  ).pipe(Effect.provideContext(tokens))
  yield* Layer.build(
    HttpServer.serve(app).pipe(Layer.provide(closing), Layer.provide(server))
  ).pipe(
    Effect.catchTag("ServeError", ({ cause }) => Effect.fail(new ListenRefused(reasonOf(cause))))
  )
  yield* Effect.addFinalizer(() => Deferred.succeed(stopping, undefined))
  const at = node.address()
  return { app, refused, port: typeof at === "object" && at !== null ? at.port : options.port }
})
