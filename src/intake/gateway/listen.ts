import { randomUUID } from "node:crypto"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { createServer } from "node:http"
import { createServer as createTlsServer } from "node:https"
import { hostname } from "node:os"
import { Context, Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { RefusingSource } from "../../cluster/gateway-reports.ts"
import { eraseGatewayReport, writeGatewayReport } from "../../cluster/gateway-reports.ts"
import { Connections } from "../../connections/connections.ts"
import { listen } from "../../metrics/listen.ts"
import { timers } from "../../time/timers.ts"
import type { AdmissionBounds } from "./admission.ts"
import { Admission, defaultBounds } from "./admission.ts"
import { crowded, refuseConnection } from "./answer.ts"
import { makeCertificates } from "./certificates.ts"
import type { GatewayCounts } from "./counts.ts"
import { makeHandler } from "./handle-request.ts"
import { followSources } from "./live-sources.ts"
import { Refusals } from "./refusals.ts"
import { StoreWatch } from "./store-watch.ts"

/** Pause between reports, ms. */
export const reportMs = 5_000
/** How long the last words of a gateway are waited for, ms. */
const lastWordsMs = 1_000

/**
 * Checks again and again whether the broker stores what comes in, and says how the gateway is and
 * which sources refuse, until the scope closes. What the broker does not take is said the next time.
 */
const reportGateway = Effect.fnUntraced(function* (
  admission: Pick<Admission, "underWay" | "problem">,
  store: StoreWatch,
  sources: {
    readonly refusing: () => ReadonlyArray<RefusingSource>
    readonly isHidden: () => boolean
  },
  everyMs: number
) {
  const [gateway, startedAt] = [randomUUID(), timers.wallMs()]
  const say = Effect.suspend(() => {
    const at = timers.wallMs()
    const refusing = sources.refusing()
    const { problem, underWay } = admission
    return writeGatewayReport({
      ...{ v: 1, gateway, host: hostname(), startedAt, at, underWay, refusing },
      ...(problem === undefined ? {} : { problem }),
      ...(sources.isHidden() ? { isOutdated: true } : {})
    })
  }).pipe(
    Effect.catch((error) => Effect.logDebug("the state of the gateway was not stored", error))
  )
  const turn = Effect.andThen(store.check, say)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(turn, Effect.sleep(everyMs))))
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.timeoutOption(eraseGatewayReport(gateway), lastWordsMs))
  )
})

/** Where and how a gateway listens. */
export interface GatewayOptions {
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  /** Certificate and key, in PEM. (Default: without TLS) */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  readonly counts: GatewayCounts
  /** How much is taken at the same time. (Default: `defaultBounds`) */
  readonly bounds?: AdmissionBounds
  /** Connections at the same time. (Default: 4,096) */
  readonly maxConnections?: number | undefined
  /** Connections that have lost their place and are not closed yet. (Default: 2,048) */
  readonly maxHeldConnections?: number | undefined
  /** How long a stop waits for requests under way, ms. (Default: 10 s) */
  readonly stopWithinMs?: number
  /** Pause between what it says of itself, ms. (Default: 5 s) */
  readonly reportMs?: number
  /** How long a client may take for a whole request, ms. (Default: 15 s) */
  readonly requestWithinMs?: number
}

const defaultStopWithinMs = 10_000
const defaultRequestWithinMs = 15_000
/** How often a client's time is checked, ms. */
const checkedEveryMs = 1_000
/** How long an idle connection is kept, ms: longer than proxies keep theirs. */
const keepAliveMs = 65_000
/** Connections at the same time. Half of them may be of clients that have sent nothing verified. */
export const maxConnections = 4_096
/** Connections that the kernel keeps until they are accepted. */
const backlog = 4_096
/** Bytes that an event's headers in INTAKE may take. */
const headerBytes = 16 * 1024

/** A gateway that listens. */
export interface Gateway {
  readonly port: number
  /** What keeps it from its work, one sentence each. */
  readonly problems: () => ReadonlyArray<string>
}

/**
 * Takes requests of providers on `/in/<tenant>/<source>` until the scope closes: those under way are
 * answered first. Fails with ListenRefused if the address cannot be used.
 */
export const serveGateway = Effect.fnUntraced(function* (options: GatewayOptions) {
  const { bounds = defaultBounds, counts, tls } = options
  const { life, names, streamInfo } = yield* Broker
  const { isHidden, sources } = yield* followSources(makeCertificates(() => timers.wallMs()))
  const info = yield* streamInfo(`look at ${names.intake}`, names.intake)
  const maxBytes = info.config.max_msg_size - headerBytes
  const admission = new Admission(bounds)
  const store = new StoreWatch(admission, bounds.silentMs)
  const connections = new Connections({
    ...{ max: options.maxConnections ?? maxConnections, maxHeld: options.maxHeldConnections },
    ...{ isPlain: tls === undefined, crowded },
    refused: () => counts.closed()
  })
  const refusals = new Refusals()
  const context = yield* Effect.context<Broker>()
  let isStopping = false
  const handle = makeHandler({
    isStopping: () => isStopping,
    ...{ admission, connections, counts, maxBytes, refusals, sources, store, bounds },
    scheme: tls === undefined ? "http" : "https",
    run: Effect.runPromiseWith(Context.add(context, Broker, yield* Broker))
  })
  counts.connections = () => connections.counts
  const requestWithin = options.requestWithinMs ?? defaultRequestWithinMs
  const limits = {
    headersTimeout: Math.min(10_000, requestWithin),
    requestTimeout: requestWithin,
    connectionsCheckingInterval: Math.min(checkedEveryMs, requestWithin),
    keepAliveTimeout: keepAliveMs
  }
  const server: Server =
    tls === undefined
      ? createServer(limits, handle)
      : createTlsServer({ ...limits, ...tls, handshakeTimeout: limits.headersTimeout }, handle)
  connections.watch(server)
  server.on("clientError", refuseConnection)
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) =>
    handle(request, response, () => response.writeContinue())
  )
  const stopWithin = options.stopWithinMs ?? defaultStopWithinMs
  const port = yield* Effect.acquireRelease(listen(server, options, backlog), () =>
    Effect.callback<void>((resume) => {
      isStopping = true
      server.close(() => resume(Effect.void))
      server.closeIdleConnections()
      const late = timers.after(stopWithin, () => server.closeAllConnections())
      server.once("close", () => timers.cancel(late))
    })
  )
  yield* reportGateway(
    admission,
    store,
    {
      isHidden,
      refusing: () => refusals.refusing((key) => sources().get(key, timers.wallMs()) !== undefined)
    },
    options.reportMs ?? reportMs
  )
  return {
    port,
    problems: () => {
      if (life() === undefined) return ["the broker is not connected"]
      const { problem } = admission
      return problem === undefined
        ? []
        : [`nothing that comes in is stored, and providers are told to send it again: ${problem}`]
    }
  } satisfies Gateway
})
