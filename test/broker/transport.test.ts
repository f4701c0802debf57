import { once } from "node:events"
import type { AddressInfo, Socket } from "node:net"
import { createServer } from "node:net"
import { assert, describe, it, vi } from "@effect/vitest"
import { Transport } from "../../src/broker/transport.ts"

const info = JSON.stringify({
  ...{ server_id: "S", version: "2.15.1", proto: 1, headers: true, max_payload: 1024 }
})

describe("a connection that the broker ends", () => {
  it("ends no process where something is written to it just then", async () => {
    const server = createServer((socket) => socket.write(`INFO ${info}\r\n`)).listen(0, "127.0.0.1")
    await once(server, "listening")
    const accepted = once(server, "connection")
    const { port } = server.address() as AddressInfo
    const transport = new Transport()
    const to = { hostname: "127.0.0.1", port, tlsName: "" }
    await transport.connect(to, { timeout: 5_000 })
    const [socket] = (await accepted) as [Socket]
    const { socket: own } = transport
    const ended = once(own, "end")
    socket.end()
    await ended
    own.end()
    transport.send(Buffer.from("PING\r\n"))
    await transport.close(new Error("stale"))
    assert.strictEqual(own.listenerCount("error"), 1)
    assert.strictEqual(own.listenerCount("data"), 0)
    // Its own listener for "close" is gone as well; what the socket's error does is over once it is closed.
    await vi.waitUntil(() => own.closed)
    server.close()
  })
})
