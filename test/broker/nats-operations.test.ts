import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { operationsOf } from "../../src/broker/nats-operations.ts"
import { startServer } from "../kit/nats-server.ts"

describe("a stream that has no leader for some seconds", () => {
  it.live("is looked at again, as its leader does not answer what was asked before", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer()),
        (one) => Effect.promise(() => one.stop())
      )
      yield* Effect.gen(function* () {
        const clients = yield* natsClients
        yield* Effect.promise(() => clients.jsm.streams.add({ name: "A", subjects: ["a"] }))
        const { info } = clients.jsm.streams
        let asked = 0
        // Without a leader the broker drops the request.
        clients.jsm.streams.info = function (...args) {
          return ++asked === 1 ? new Promise(() => undefined) : info.apply(this, args)
        }
        const { streamInfo } = operationsOf(clients, () => () => undefined)
        const look = Effect.timeout(streamInfo("look at A", "A"), "8 seconds")
        assert.strictEqual((yield* look).config.name, "A")
        assert.strictEqual(asked, 2)
      }).pipe(Effect.provide(connectTo({ url: server.url })))
    }).pipe(Effect.scoped)
  )
})
