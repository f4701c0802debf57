import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { createServer } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo, Socket } from "node:net"
import { Context, Effect, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { sourceLabel } from "../../domain/source.ts"
import type { ReceivedRequest } from "../../providers/provider.ts"
import { timers } from "../../time/timers.ts"
import type { AdmissionBounds } from "./admission.ts"
import { Admission, defaultBounds } from "./admission.ts"
import { makeCertificates } from "./certificates.ts"
import type { GatewayCounts } from "./counts.ts"
import type { LiveSource } from "./live-sources.ts"
import { followSources } from "./live-sources.ts"
import { readBody } from "./read-body.ts"
import { Refusals } from "./refusals.ts"
import type { Answer } from "./take-request.ts"
import { makeTakeRequest, tellRefusing } from "./take-request.ts"

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
  /** How long a stop waits for requests under way, ms. (Default: 10 s) */
  readonly stopWithinMs?: number
  /** How long a client may take for a whole request, ms. (Default: 15 s) */
  readonly requestWithinMs?: number
}

/** The gateway cannot listen at its address. */
export class GatewayRefused extends Schema.TaggedError<GatewayRefused>()("GatewayRefused", {
  code: Schema.String,
  message: Schema.String
}) {}

const defaultStopWithinMs = 10_000
const defaultRequestWithinMs = 15_000
/** How often a client's time is checked, ms. */
const checkedEveryMs = 1_000
/** How long an idle connection is kept, ms: longer than proxies keep theirs. */
const keepAliveMs = 65_000
const maxConnections = 4_096
/** Connections that the kernel keeps until they are accepted. */
const backlog = 4_096
/** Bytes that an event's headers in INTAKE may take. */
const headerBytes = 16 * 1024
/** A refused request with a longer body closes its connection: the body is not waited for. */
const maxDrained = 64 * 1024

const sourceForm = /^\/in\/([A-Za-z0-9_-]{1,64})\/([A-Za-z0-9_-]{1,64})\/?$/

/** Headers as providers read them: one text for each name. */
const headersOf = ({ headers }: IncomingMessage): ReceivedRequest["headers"] => {
  const texts: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(headers))
    texts[name] = Array.isArray(value) ? value.join(", ") : value
  return texts
}

const send = (
  request: IncomingMessage,
  response: ServerResponse,
  answer: Omit<Answer, "outcome">
) => {
  if (response.headersSent || response.destroyed) return
  const { body = "", headers = {}, status } = answer
  const isLong =
    !request.complete &&
    (request.headers["content-length"] === undefined ||
      Number(request.headers["content-length"]) > maxDrained)
  response.writeHead(status, {
    ...(body === "" ? {} : { "content-type": "text/plain; charset=utf-8" }),
    ...headers,
    "content-length": Buffer.byteLength(body),
    ...(isLong ? { connection: "close" } : {})
  })
  response.end(body)
}

/** Answers what is no request, and closes its connection. */
const refuseConnection = (error: Error, socket: Socket) => {
  const isLate = "code" in error && error.code === "ERR_HTTP_REQUEST_TIMEOUT"
  if (socket.writable)
    socket.end(
      `HTTP/1.1 ${isLate ? "408 Request Timeout" : "400 Bad Request"}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`
    )
  timers.after(500, () => socket.destroy()).unref()
}

const listen = (server: Server, { host, port }: GatewayOptions) =>
  Effect.callback<void, GatewayRefused>((resume) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(new GatewayRefused({ code: error.code ?? "", message: error.message })))
    )
    server.listen({ host, port, backlog }, () => {
      server.on("error", () => undefined)
      resume(Effect.void)
    })
  })

/** A gateway that listens. */
export interface Gateway {
  readonly port: number
  /** What keeps it from its work, one sentence each. */
  readonly problems: () => ReadonlyArray<string>
}

/**
 * Takes requests of providers on `/in/<tenant>/<source>` until the scope closes: those under way are
 * answered first. Fails with GatewayRefused if the address cannot be used.
 */
export const serveGateway = Effect.fnUntraced(function* (options: GatewayOptions) {
  const { bounds = defaultBounds, counts, tls } = options
  const { names, streamInfo } = yield* Broker
  const sources = yield* followSources(makeCertificates(() => timers.wallMs()))
  const info = yield* streamInfo(`look at ${names.intake}`, names.intake)
  const maxBytes = info.config.max_msg_size - headerBytes
  const admission = new Admission(bounds)
  const refusals = new Refusals()
  const context = yield* Effect.context<Broker>()
  const runPromise = Effect.runPromiseWith(Context.add(context, Broker, yield* Broker))
  const take = makeTakeRequest({
    ...{ admission, refusals, maxBytes: () => maxBytes, silentMs: bounds.silentMs }
  })
  const scheme = tls === undefined ? "http" : "https"

  const takeBody = async (
    live: LiveSource,
    request: IncomingMessage
  ): Promise<Answer | undefined> => {
    const read = await readBody(request, maxBytes, {
      take: (bytes) => admission.takeBytes(live, bytes),
      give: (bytes) => admission.giveBytes(live, bytes)
    })
    try {
      switch (read.as) {
        case "body":
          return await runPromise(
            take(live, {
              method: request.method ?? "",
              url: `${scheme}://${request.headers.host ?? "localhost"}${request.url ?? ""}`,
              headers: headersOf(request),
              body: read.body
            })
          )
        case "too-large": {
          const told = refusals.tooLarge(live.key, maxBytes)
          if (told !== undefined) await runPromise(tellRefusing(live, told))
          const body = `an event may have ${maxBytes} bytes`
          return { status: 413, outcome: "too-large", body }
        }
        case "no-room":
          return { status: 503, outcome: "overloaded", headers: { "retry-after": "1" } }
        case "broken-off":
          return undefined
      }
    } finally {
      admission.giveBytes(live, read.bytes)
    }
  }

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const startedAt = timers.monotonicMs()
    const path = (request.url ?? "").split("?", 1)[0] ?? ""
    const [, tenant, id] = sourceForm.exec(path) ?? []
    const live =
      tenant === undefined ? undefined : sources().get(`${tenant}.${id}`, timers.wallMs())
    const end = (answer: Answer) => {
      const ms = timers.monotonicMs() - startedAt
      const label = live === undefined ? "_unknown" : sourceLabel(live.source)
      counts.note(label, answer.outcome, answer.status, ms)
      send(request, response, answer)
    }
    if (live === undefined) {
      end({ status: 404, outcome: "unknown-source", body: "there is no such source" })
      return
    }
    const notNow = admission.begin(live)
    if (notNow !== undefined) {
      const mayRepeat = notNow.outcome === "rate-limited" && live.provider?.retries429 === true
      const headers = { "retry-after": String(notNow.retryAfterS) }
      end({ status: mayRepeat ? 429 : 503, outcome: notNow.outcome, headers })
      return
    }
    counts.underWay = admission.underWay
    takeBody(live, request)
      .catch((): Answer => ({ status: 503, outcome: "broker-unavailable" }))
      .then((answer) => {
        admission.end(live)
        counts.underWay = admission.underWay
        if (answer === undefined) {
          counts.note(sourceLabel(live.source), "broken-off", 400, timers.monotonicMs() - startedAt)
          response.destroy()
        } else end(answer)
      })
  }

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
      : createTlsServer({ ...limits, ...tls }, handle)
  server.maxConnections = maxConnections
  server.on("clientError", refuseConnection)
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    response.writeContinue()
    handle(request, response)
  })
  const stopWithin = options.stopWithinMs ?? defaultStopWithinMs
  yield* Effect.acquireRelease(listen(server, options), () =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeIdleConnections()
      const late = timers.after(stopWithin, () => server.closeAllConnections())
      server.once("close", () => timers.cancel(late))
    })
  )
  const { port } = server.address() as AddressInfo
  return {
    port,
    problems: () =>
      admission.isSilent ? ["the broker does not answer: providers are told to come again"] : []
  } satisfies Gateway
})
