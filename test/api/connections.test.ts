import { Agent, createServer, request } from "node:https"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "../../src/api/connections.ts"
import { RefusalCells } from "../../src/metrics/refused-requests.ts"
import { eventually } from "../kit/engine.ts"
import { selfSigned } from "../kit/receiver.ts"

describe("connections", () => {
  it.live("are known with TLS, too, and forgotten when they close", () =>
    Effect.gen(function* () {
      const connections = new Connections(new RefusalCells(), 8, false)
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
      const { port } = server.address() as AddressInfo
      const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
      const status = yield* Effect.callback<number | undefined>((resume) => {
        request({ agent, host: "127.0.0.1", port }, (response) => {
          response.resume()
          response.on("end", () => resume(Effect.succeed(response.statusCode)))
        }).end()
      })
      assert.strictEqual(status, 200)
      const counts = () => connections.family().samples.map(({ value }) => value)
      assert.deepStrictEqual(counts(), [0, 1])
      agent.destroy()
      yield* eventually(Effect.sync(counts), ([strangers, known]) => strangers === 0 && known === 0)
    })
  )
})
