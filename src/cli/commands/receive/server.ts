import type { IncomingMessage, ServerResponse } from "node:http"
import { createServer } from "node:http"
import { Effect } from "effect"
import { Refused } from "../../refused.ts"

/** Maximum bytes of a body that are taken; the connection of a longer one is closed. */
export const maxBodyBytes = 16 * 1024 * 1024

/** A request with its whole body, and the answer that it waits for. */
export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  /** By name in lower case; values of one name are joined. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly respond: (
    status: number,
    headers: Readonly<Record<string, string>>,
    body?: Uint8Array
  ) => void
  /** Closes the connection without an answer. */
  readonly drop: () => void
}

const headersOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? "")
    ])
  )

const collect = (
  incoming: IncomingMessage,
  response: ServerResponse,
  receive: (request: ReceivedRequest) => void
): void => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  incoming.on("error", () => response.destroy())
  incoming.on("data", (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBodyBytes) incoming.destroy()
    else chunks.push(chunk)
  })
  incoming.on("end", () => {
    receive({
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: headersOf(incoming),
      body: Buffer.concat(chunks),
      respond: (status, headers, body) => {
        if (response.destroyed) return
        response.writeHead(status, { ...headers })
        response.end(body)
      },
      drop: () => response.destroy()
    })
  })
}

const problemOf = (error: Error & { readonly code?: string }, port: number): string => {
  switch (error.code) {
    case "EADDRINUSE":
      return `port ${port} is in use: choose another one with --port, or 0 for any free one`
    case "EACCES":
      return `this user may not listen on port ${port}: choose one above 1023 with --port`
    default:
      return `cannot listen on port ${port}: ${error.message}`
  }
}

/**
 * Receives HTTP requests until the scope closes. Returns the port. Fails with Refused where it
 * cannot listen.
 */
export const receiveRequests = (
  { host, port }: { readonly host: string; readonly port: number },
  receive: (request: ReceivedRequest) => void
) =>
  Effect.acquireRelease(
    Effect.callback<
      { readonly server: ReturnType<typeof createServer>; readonly port: number },
      Refused
    >((resume) => {
      const server = createServer((incoming, response) => collect(incoming, response, receive))
      server.once("error", (error) =>
        resume(Effect.fail(new Refused({ message: problemOf(error, port) })))
      )
      server.listen(port, host, () => {
        const address = server.address()
        const taken = typeof address === "object" && address !== null ? address.port : port
        resume(Effect.succeed({ server, port: taken }))
      })
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  ).pipe(Effect.map((listening) => listening.port))
