import { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { HeldConnections, heldBackMs } from "../../src/connections/held-connections.ts"

describe("connections that have lost their place", () => {
  it("are as many at most as there are files for, if that is less", () => {
    const held = new HeldConnections(2)
    const sockets = [new Socket(), new Socket(), new Socket()]
    const gone: Array<Socket> = []
    for (const socket of sockets)
      held.hold(socket, "owner", () => {
        gone.push(socket)
        socket.destroy()
      })
    assert.deepStrictEqual(gone, sockets.slice(0, 1))
    for (const socket of sockets) socket.emit("close")
  })

  it("are 2,048 at most: where there are more, the first goes", () => {
    const held = new HeldConnections(Number.POSITIVE_INFINITY)
    const gone: Array<number> = []
    const sockets = Array.from({ length: 2_050 }, () => new Socket())
    for (const [number, socket] of sockets.entries())
      held.hold(socket, `owner ${number % 3}`, () => {
        gone.push(number)
        socket.destroy()
      })
    assert.deepStrictEqual(gone, [0, 1])
    assert.strictEqual(held.size, 2_048)
    for (const socket of sockets) socket.emit("close")
    assert.strictEqual(held.size, 0)
  })
})

describe("who is refused", () => {
  it("is held back for a second, and longer the more of the same owner are", () => {
    const waits = [0, 32, 64, 160, 320, 10_000].map(heldBackMs)
    assert.deepStrictEqual(waits, [1_000, 1_000, 2_000, 5_000, 10_000, 10_000])
  })
})
