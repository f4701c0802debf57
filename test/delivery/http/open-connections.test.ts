import { EventEmitter } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { startAttempt } from "../../../src/delivery/http/attempt.ts"
import { OpenConnections } from "../../../src/delivery/http/egress.ts"
import { receiver } from "../../kit/receiver.ts"
import { client, post } from "./attempting.ts"

describe("open connections", () => {
  it("are kept while a tenant has few of them, and another's many do not count for it", () => {
    const connections = new OpenConnections(40, () => true)
    const sockets = Array.from({ length: 35 }, () => new EventEmitter())
    for (const socket of sockets) {
      assert.isTrue(connections.mayKeep("globex"))
      connections.opened("globex", socket as never)
    }
    assert.isFalse(connections.mayKeep("globex"))
    assert.isTrue(connections.mayKeep("acme"))
    assert.strictEqual(connections.size, 35)
    for (const socket of sockets) socket.emit("close")
    assert.strictEqual(connections.size, 0)
    assert.isTrue(connections.mayKeep("globex"))
  })

  it.live(
    "are closed after their answer beyond a tenant's part, however long receivers keep them",
    () =>
      Effect.gen(function* () {
        const headers = { "keep-alive": "timeout=600" }
        const hosts = yield* Effect.forEach(Array.from({ length: 40 }), () =>
          receiver({ answer: { status: 200, headers } })
        )
        const connections = new OpenConnections(16, () => true)
        const agent = yield* client({ onOpened: connections.opened })
        const one = (url: string) =>
          Effect.callback<void>((resume) => {
            const done = () => resume(Effect.void)
            startAttempt(agent, post(url), done, connections.mayKeep("acme"))
          })
        for (const { url } of hosts) yield* one(url)
        assert.isAtMost(connections.size, 15)
        assert.isAtLeast(connections.size, 10)
      })
  )
})
