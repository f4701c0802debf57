import { createServer as createPlainServer } from "node:http"
import { Agent, createServer, request } from "node:https"
import type { AddressInfo } from "node:net"
import { connect, type TLSSocket } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "../../src/connections/connections.ts"
import { eventually } from "../kit/engine.ts"
import { head, rawClient } from "../kit/raw-client.ts"
import { selfSigned } from "../kit/receiver.ts"

const options = {
  max: 1_024,
  isPlain: true,
  crowded: "HTTP/1.1 503 Refused\r\nconnection: close\r\n\r\ntoo many connections",
  refused: () => undefined
}

/** A server with TLS that answers whoever has a place. */
const setUp = Effect.fnUntraced(function* (max: number) {
  const connections = new Connections({ ...options, max, isPlain: false })
  const server = createServer(selfSigned("IP:127.0.0.1"))
  connections.watch(server)
  server.on("request", ({ socket }, response) => {
    connections.begin(socket, response)
    connections.recognize(socket, "acme")
    response.end("known")
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.sync(() => server.close())
  )
  return { connections, port: (server.address() as AddressInfo).port }
})

describe("connections with TLS", () => {
  it.live("are known, and forgotten when they close", () =>
    Effect.gen(function* () {
      const { connections, port } = yield* setUp(8)
      const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
      const status = yield* Effect.callback<number | undefined>((resume) => {
        request({ agent, host: "127.0.0.1", port }, (response) => {
          response.resume()
          response.on("end", () => resume(Effect.succeed(response.statusCode)))
        }).end()
      })
      assert.strictEqual(status, 200)
      const counts = () => [connections.counts.strangers, connections.counts.known]
      assert.deepStrictEqual(counts(), [0, 1])
      agent.destroy()
      yield* eventually(Effect.sync(counts), ([strangers, known]) => strangers === 0 && known === 0)
    })
  )

  it.live("are not answered once they have lost their place, but told why and closed", () =>
    Effect.gen(function* () {
      const { port } = yield* setUp(2)
      const client = Effect.acquireRelease(
        Effect.callback<TLSSocket>((resume) => {
          const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false })
          socket.on("error", () => undefined)
          socket.on("secureConnect", () => resume(Effect.succeed(socket)))
        }),
        (socket) => Effect.sync(() => socket.destroy())
      )
      const first = yield* client
      yield* client
      let heard = ""
      first.on("data", (chunk) => {
        heard += String(chunk)
      })
      first.write("GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
      yield* eventually(
        Effect.sync(() => first.closed),
        (isClosed) => isClosed
      )
      assert.match(heard, /^HTTP\/1\.1 503 .*too many connections/s)
    })
  )
})

/**
 * A server where `/<tenant>` is answered, and `/<tenant>/begun` or `/<tenant>/waiting` is not: one is
 * begun, the other waits for its turn.
 */
const plainServer = Effect.fnUntraced(function* (max = options.max) {
  const connections = new Connections({ ...options, max })
  const server = createPlainServer()
  server.keepAliveTimeout = 0
  connections.watch(server)
  server.on("request", ({ socket, url = "" }, response) => {
    const [, tenant = "", state = "answered"] = url.split("/")
    connections.recognize(socket, tenant)
    if (state !== "waiting") connections.begin(socket, response)
    if (state === "answered") response.end("known")
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.sync(() => server.close())
  )
  const counts = Effect.sync(() => [connections.counts.strangers, connections.counts.known])
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  /** Connects, asks and waits until the connection is known. */
  const known = Effect.fnUntraced(function* (path: string) {
    const [, before = 0] = yield* counts
    const client = yield* rawClient(url)
    client.send(head("GET", path, {}))
    yield* eventually(counts, ([, now = 0]) => now > before)
    return client
  })
  return { counts, known, url }
})

describe("connections of tenants", () => {
  it.live("lose their place while what they ask waits for its turn, and others' do not", () =>
    Effect.gen(function* () {
      const { known, url } = yield* plainServer(4)
      const modest = yield* known("/modest")
      const begun = yield* known("/greedy/begun")
      const waiting = [yield* known("/greedy/waiting"), yield* known("/greedy/waiting")] as const
      yield* rawClient(url)
      yield* waiting[0].closed
      assert.include(waiting[0].heard(), "too many connections")
      for (const one of [modest, begun, waiting[1]]) assert.isTrue(one.isOpen())
    })
  )

  it.live("are 1,024 with those of strangers", () =>
    Effect.gen(function* () {
      const { counts, url } = yield* plainServer()
      const batch = 265
      for (const sum of [265, 530, 795, 1_024]) {
        const clients = Effect.all(
          Array.from({ length: batch }, () => rawClient(url)),
          { concurrency: 64 }
        )
        for (const one of yield* clients) one.send(head("GET", "/acme", {}))
        yield* eventually(counts, ([strangers, known]) => strangers === 0 && known === sum)
      }
    })
  )
})
