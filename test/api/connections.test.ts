import { Agent, createServer, request } from "node:https"
import type { AddressInfo } from "node:net"
import { connect, type TLSSocket } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "../../src/api/connections.ts"
import { RefusalCells } from "../../src/metrics/refused-requests.ts"
import { eventually } from "../kit/engine.ts"
import { selfSigned } from "../kit/receiver.ts"

/** A server with TLS that answers whoever has a place. */
const setUp = Effect.fnUntraced(function* (max: number) {
  const connections = new Connections(new RefusalCells(), max, false)
  const server = createServer(selfSigned("IP:127.0.0.1"))
  connections.watch(server)
  server.on("request", ({ socket }, response) => {
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
      const counts = () => connections.families()[0]?.samples.map(({ value }) => value) ?? []
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
