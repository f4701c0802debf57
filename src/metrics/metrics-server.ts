import type { IncomingMessage, ServerResponse } from "node:http"
import { createServer } from "node:http"
import { isIP } from "node:net"
import { hostname } from "node:os"
import { Effect, Schema } from "effect"
import type { Family } from "./family.ts"
import type { ListenAddress, ListenRefused } from "./listen.ts"
import { listen, listenText } from "./listen.ts"
import { prometheusContentType, prometheusText } from "./prometheus-text.ts"

/** An address cannot be listened at. The message is a sentence that says what to do. */
class ListenFailed extends Schema.TaggedError<ListenFailed>()("ListenFailed", {
  message: Schema.String
}) {}

export interface MetricsServerOptions extends ListenAddress {
  readonly families: () => ReadonlyArray<Family>
  /** What keeps the process from its work, one sentence each; none if it is ready. */
  readonly problems: () => ReadonlyArray<string>
}

/** Whoever is slower to ask than this is cut off, ms. */
const requestTimeoutMs = 5_000
/** Scrapers and health checks are few. */
const maxConnections = 64

const explained = (address: ListenAddress, error: ListenRefused): string => {
  const at = listenText(address)
  switch (error.code) {
    case "EADDRINUSE":
      return `${at} is in use: stop what listens there, or choose another port`
    case "EACCES":
      return `${at} is not allowed to this user: choose a port above 1023`
    case "EADDRNOTAVAIL":
      return `${at} is not an address of this machine: choose one that is, such as 127.0.0.1`
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `${address.host} is no known name: choose an address of this machine, such as 127.0.0.1`
    default:
      return `nothing can listen at ${at}: ${error.message}`
  }
}

const answer = (response: ServerResponse, status: number, text: string, type = "text/plain") => {
  const body = Buffer.from(text)
  response.writeHead(status, {
    "content-type": type,
    "content-length": body.length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff"
  })
  response.end(body)
}

/**
 * Returns whether a server may be asked under the name in a Host header: an address, the name that it
 * listens on or that the machine has, or one without a dot, as in a network of containers. Any other
 * may be that of a web page whose name was made to point here (DNS rebinding), to be read by a browser
 * that reaches this address.
 */
export const isOwnHost = (header: string, listenHost: string): boolean => {
  const name = header.toLowerCase().replace(/:\d*$/, "")
  return (
    isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0 ||
    /^[^.:[\]]+$/.test(name) ||
    [listenHost, hostname()].some((own) => own.toLowerCase() === name)
  )
}

const handle = (
  { families, host, problems }: MetricsServerOptions,
  { headers, method, url = "" }: IncomingMessage,
  response: ServerResponse
): void => {
  const path = url.split("?", 1)[0]
  if (method !== "GET" && method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD")
    answer(response, 405, "only GET is answered here\n")
  } else if (path === "/metrics" && !isOwnHost(headers.host ?? "", host))
    answer(
      response,
      421,
      "the header Host names another server: ask by an address of this machine, or start it with that name, as in --metrics NAME:PORT\n"
    )
  else if (path === "/metrics")
    answer(response, 200, prometheusText(families()), prometheusContentType)
  else if (path === "/healthz") answer(response, 200, "alive\n")
  else if (path === "/readyz") {
    const those = problems()
    answer(
      response,
      those.length === 0 ? 200 : 503,
      those.length === 0 ? "ready\n" : those.map((problem) => `${problem}\n`).join("")
    )
  } else answer(response, 404, "here are /metrics, /healthz and /readyz\n")
}

const makeServer = (options: MetricsServerOptions) => {
  const server = createServer((request, response) => handle(options, request, response))
  server.requestTimeout = requestTimeoutMs
  server.headersTimeout = requestTimeoutMs
  server.maxConnections = maxConnections
  return server
}

/**
 * Serves `/metrics` as Prometheus text, `/healthz` and `/readyz` until the scope closes. Returns
 * where it listens.
 */
export const serveMetrics = Effect.fnUntraced(function* (options: MetricsServerOptions) {
  const server = makeServer(options)
  const port = yield* Effect.acquireRelease(listen(server, options), () =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeAllConnections()
    })
  ).pipe(Effect.mapError((error) => new ListenFailed({ message: explained(options, error) })))
  const address: ListenAddress = { host: options.host, port }
  return address
})
