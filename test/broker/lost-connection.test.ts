import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ask } from "../../src/broker/broker-error.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { isUnanswered } from "../../src/broker/keep-going.ts"
import { startServer } from "../kit/nats-server.ts"

/** Time-out of the requests, ms: the test fails where it has to pass. */
const timeout = 60_000

describe("a connection to the broker that is lost", () => {
  it.live(
    "fails what was asked on it at once, and what is asked meanwhile once there is another",
    () =>
      Effect.gen(function* () {
        const server = yield* Effect.acquireRelease(
          Effect.promise(() => startServer()),
          (one) => Effect.promise(() => one.stop())
        )
        yield* Effect.gen(function* () {
          const { connection, jsm } = yield* natsClients
          const request = (subject: string) =>
            ask(`ask ${subject}`, () => connection.request(subject, "", { timeout }))
          // Nobody answers here: the subscription keeps the broker from saying so.
          connection.subscribe("silent")
          const asked = yield* Effect.forkChild(Effect.flip(request("silent")))
          yield* Effect.promise(() => connection.flush())
          yield* Effect.promise(() => server.kill9())
          const error = yield* Fiber.join(asked)
          assert.strictEqual(error.message, "ask silent: the connection to the broker was lost")
          assert.isTrue(isUnanswered(error))

          const askedMeanwhile = yield* Effect.forkChild(Effect.flip(request("silent")))
          yield* Effect.promise(() => server.restart())
          yield* Fiber.join(askedMeanwhile)
          yield* ask("look at the account", () => jsm.getAccountInfo())
        }).pipe(Effect.provide(connectTo({ url: server.url })))
      }).pipe(Effect.scoped)
  )
})
