import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import {
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type RequestListener,
  type ServerResponse
} from "node:http"
import { createServer as createTlsServer } from "node:https"
import { createServer as createTcpServer, type Server, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TlsOptions } from "node:tls"
import { Effect } from "effect"
import { makeConditions } from "./conditions.ts"

/** A received request, with its body unchanged. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Number of its connection, from 1. */
  readonly connection: number
  /** ms since the epoch. */
  readonly at: number
}

export interface Answer {
  /** (Default: 200) */
  readonly status?: number
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Uint8Array
}

/**
 * A receiver's answer: constant, or computed for each request. Undefined: the script writes the
 * response itself.
 */
export type Script =
  | Answer
  | ((request: Received, response: ServerResponse) => Answer | undefined | Promise<Answer>)

/** Passes the time that a receiver takes for its answer, ms. Resolves to that it is a 200. */
export const latency = (ms: number): Promise<Answer> =>
  new Promise((resolve) => setTimeout(() => resolve({ status: 200 }), ms))

interface Listening {
  readonly port: number
  /** `127.0.0.1:<port>`, or with the requested host. */
  readonly host: string
  /** Returns the number of connections so far. */
  readonly connections: () => number
  /** Succeeds when all connections so far are closed. */
  readonly quiet: Effect.Effect<void>
}

export interface Receiver extends Listening {
  /** Scheme, host and port, without a path. */
  readonly url: string
  /** In the order in which their bodies were complete. */
  readonly requests: ReadonlyArray<Received>
  /** Changes the answer to subsequent requests. */
  readonly answer: (script: Script) => void
  /** Succeeds when `count` requests have arrived since the start. */
  readonly received: (count: number) => Effect.Effect<void>
}

const listen = (server: Server, host: string, conditions: ReturnType<typeof makeConditions>) =>
  Effect.acquireRelease(
    Effect.callback<Listening>((resume) => {
      let connections = 0
      const open = new Set<Socket>()
      server.on("connection", (socket: Socket) => {
        connections++
        open.add(socket)
        socket.on("error", () => {})
        socket.on("close", () => {
          open.delete(socket)
          conditions.changed()
        })
        conditions.changed()
      })
      server.on("stop", () => {
        for (const socket of open) socket.destroy()
      })
      server.listen(0, host, () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(
          Effect.succeed({
            port,
            host: `${host.includes(":") ? `[${host}]` : host}:${port}`,
            connections: () => connections,
            quiet: conditions.until(() => connections > 0 && open.size === 0)
          })
        )
      })
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.emit("stop")
        server.close(() => resume(Effect.void))
      })
  )

export interface ReceiverOptions {
  readonly answer?: Script
  /** (Default: 127.0.0.1) */
  readonly host?: string
  /** Serves https with this certificate. */
  readonly certificate?: Certificate & Pick<TlsOptions, "ciphers" | "maxVersion">
}

/** An HTTP server on a free port that records requests and answers them by its script. */
export const receiver = Effect.fnUntraced(function* (options: ReceiverOptions = {}) {
  const conditions = makeConditions()
  const requests: Array<Received> = []
  const numbers = new WeakMap<Socket, number>()
  let script: Script = options.answer ?? {}
  let connections = 0

  const handle: RequestListener = (incoming, response) => {
    const chunks: Array<Buffer> = []
    const number = numbers.get(incoming.socket) ?? ++connections
    numbers.set(incoming.socket, number)
    incoming.on("error", () => {})
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
    incoming.on("end", async () => {
      const request: Received = {
        method: incoming.method ?? "",
        path: incoming.url ?? "",
        headers: incoming.headers,
        body: Buffer.concat(chunks),
        connection: number,
        at: Date.now()
      }
      requests.push(request)
      const decided = typeof script === "function" ? script(request, response) : script
      conditions.changed()
      const answer = await decided
      if (answer !== undefined) {
        response.writeHead(answer.status ?? 200, answer.headers)
        response.end(answer.body)
      }
    })
  }
  const server =
    options.certificate === undefined
      ? createServer(handle)
      : createTlsServer(options.certificate, handle)
  // Only the client ends keep-alive connections.
  server.keepAliveTimeout = 0
  const listening = yield* listen(server, options.host ?? "127.0.0.1", conditions)
  const made: Receiver = {
    ...listening,
    url: `${options.certificate === undefined ? "http" : "https"}://${listening.host}`,
    requests,
    answer: (next) => {
      script = next
    },
    received: (count) => conditions.until(() => requests.length >= count)
  }
  return made
})

/** A TCP server on a free port that passes each connection to the handler. */
export const tcpServer = (onConnection: (socket: Socket) => void, host = "127.0.0.1") => {
  const conditions = makeConditions()
  const server = createTcpServer(onConnection)
  return Effect.map(listen(server, host, conditions), (listening) => ({
    ...listening,
    connected: (count: number) => conditions.until(() => listening.connections() >= count)
  }))
}

const deafProgram = `const server = require("node:net").createServer()
server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => console.log(server.address().port))`

/**
 * A listening socket of a process that stands still: the system completes two connections or so that
 * nobody accepts, and answers no others.
 */
export const deafServer = Effect.acquireRelease(
  Effect.callback<{ readonly host: string; readonly stop: () => void }>((resume) => {
    const child = spawn(process.execPath, ["-e", deafProgram], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    child.stdout.once("data", (port: Buffer) => {
      child.kill("SIGSTOP")
      resume(
        Effect.succeed({
          host: `127.0.0.1:${String(port).trim()}`,
          stop: () => child.kill("SIGKILL")
        })
      )
    })
  }),
  ({ stop }) => Effect.sync(stop)
)

/** PEM. */
export interface Certificate {
  readonly key: string
  readonly cert: string
}

/**
 * Generates a self-signed certificate.
 *
 * @param names its subjects, as in openssl's subjectAltName: "IP:127.0.0.1", "DNS:example.test".
 */
export const selfSigned = (...names: ReadonlyArray<string>): Certificate => {
  const directory = mkdtempSync(join(tmpdir(), "petrel-certificate-"))
  const key = join(directory, "key.pem")
  const cert = join(directory, "cert.pem")
  try {
    execFileSync(
      "openssl",
      [
        ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
        ...["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=petrel test"],
        ...["-addext", `subjectAltName=${names.join(",")}`]
      ],
      { stdio: "pipe" }
    )
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
