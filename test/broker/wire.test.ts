import { once } from "node:events"
import type { AddressInfo, Socket } from "node:net"
import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { connect } from "../../src/broker/transport.ts"
import { wireOf } from "../../src/broker/wire.ts"

/** What a server says of itself, and of the others of its cluster. */
const info = (...urls: ReadonlyArray<string>): string =>
  `INFO ${JSON.stringify({
    ...{ server_id: "S", version: "2.15.1", proto: 1, headers: true, max_payload: 1024 },
    connect_urls: urls
  })}\r\n`

describe("the identity of a connection", () => {
  it("stays while servers of the cluster leave and join, and changes with the connection", async () => {
    const sockets: Array<Socket> = []
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.write(info())
      socket.on("data", (data) => {
        if (data.includes("PING")) socket.write("PONG\r\n")
      })
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const connection = await connect({
      servers: `127.0.0.1:${port}`,
      reconnectTimeWait: 10,
      maxReconnectAttempts: -1
    })
    try {
      const wire = wireOf(connection)
      const { life } = wire
      assert.isDefined(life)
      sockets[0]?.write(info(`127.0.0.1:${port}`))
      await connection.flush()
      assert.strictEqual(wire.life, life)

      const statuses = connection.status()
      sockets[0]?.destroy()
      for await (const { type } of statuses) if (type === "reconnect") break
      assert.isDefined(wire.life)
      assert.notStrictEqual(wire.life, life)
    } finally {
      await connection.close()
      server.close()
    }
    assert.isUndefined(wireOf(connection).life)
  })
})
