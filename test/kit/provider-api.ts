import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

/** A request to an API, as it came. */
export interface AskedApi {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

export interface ApiReply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, or as it is if it is a text. */
  readonly json?: unknown
  /** The connection is broken off instead. */
  readonly breaksOff?: true
  /** Nothing is answered. */
  readonly hangs?: true
}

/** An API of a provider on this machine, that answers as the provider's documents say. */
export const providerApi = Effect.fnUntraced(function* (answer: (request: AskedApi) => ApiReply) {
  const requests: Array<AskedApi> = []
  let reply = answer
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const url = new URL(request.url ?? "", "http://api")
    const asked: AskedApi = {
      ...{ method: request.method ?? "", path: url.pathname, query: url.searchParams },
      headers: request.headers,
      body: Buffer.concat(chunks).toString()
    }
    requests.push(asked)
    const { breaksOff, hangs, headers = {}, json, status = 200 } = reply(asked)
    if (hangs) return
    if (breaksOff) {
      response.destroy()
      return
    }
    response.writeHead(status, { "content-type": "application/json", ...headers })
    response.end(typeof json === "string" ? json : JSON.stringify(json ?? {}))
  }
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    /** Answers otherwise from now on. */
    answer: (now: (request: AskedApi) => ApiReply) => {
      reply = now
    }
  }
})

/** Stripe's list of events, newest first, in pages of `perPage` at most. */
export const stripeEvents =
  (
    events: ReadonlyArray<{ readonly id: string; readonly created: number }>,
    perPage = 100
  ): ((request: AskedApi) => ApiReply) =>
  ({ headers, path, query }) => {
    if (headers.authorization !== "Bearer sk_test_1")
      return { status: 401, json: { error: { message: "Invalid API Key provided" } } }
    if (path !== "/v1/events") return { status: 404, json: { error: { message: "no such thing" } } }
    const within = events
      .filter(
        ({ created }) =>
          created >= Number(query.get("created[gte]")) &&
          created <= Number(query.get("created[lte]"))
      )
      .toSorted((a, b) => b.created - a.created)
    const after = query.get("starting_after")
    const from = after === null ? 0 : within.findIndex(({ id }) => id === after) + 1
    const data = within.slice(from, from + Math.min(perPage, Number(query.get("limit") ?? 10)))
    return {
      json: { object: "list", data, has_more: from + data.length < within.length, url: path }
    }
  }
