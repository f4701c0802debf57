import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { ask } from "../../src/broker/broker-error.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { isUnanswered } from "../../src/broker/keep-going.ts"
import { startMicroService } from "../../src/broker/micro-service.ts"
import { eventually } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
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

  it.live("while a service is offered ends no start: it is offered on the next one", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer()),
        (one) => Effect.promise(() => one.stop())
      )
      yield* Effect.gen(function* () {
        const { connection } = yield* natsClients
        server.pause()
        const offered = yield* Effect.forkChild(
          startMicroService({
            ...{ name: "test", version: "1.0.0", description: "a test" },
            endpoints: [
              {
                ...{ name: "one", subject: "test.one", metadata: {} },
                answer: () => Effect.succeed({ body: Buffer.from("here"), headers: {} })
              }
            ]
          })
        )
        yield* Effect.sleep("300 millis")
        yield* Effect.promise(() => server.kill9())
        yield* Effect.promise(() => server.restart())
        yield* Fiber.join(offered)
        const answer = yield* ask("ask", () => connection.request("test.one", "", { timeout }))
        assert.strictEqual(answer.string(), "here")
      }).pipe(Effect.scoped, Effect.provide(connectTo({ url: server.url })))
    }).pipe(Effect.scoped)
  )

  it.live("is said to be one too many, where the broker takes no more", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer()),
        (one) => Effect.promise(() => one.stop())
      )
      const log = makeLog()
      const to = { url: server.url }
      const said = `the broker at 127.0.0.1:${server.port} accepts no connection (maximum connections exceeded): raise that limit`
      yield* Effect.gen(function* () {
        yield* natsClients
        yield* Effect.promise(() => server.restartWith("max_connections: 1"))
        const isOneRefused = Effect.sync(() => log.count(said))
        // Of the two, the broker takes one.
        yield* natsClients.pipe(Effect.andThen(Effect.never), Effect.provide(connectTo(to))).pipe(
          Effect.catch(({ message }) => Effect.logWarning(message)),
          Effect.forkScoped
        )
        yield* eventually(isOneRefused, (count) => count >= 1)
      }).pipe(Effect.provide(Layer.fresh(connectTo(to))), Effect.provide(log.layer))
    }).pipe(Effect.scoped)
  )

  it.live("is said to be refused, and why, once while another is tried for", () =>
    Effect.gen(function* () {
      const login = (password: string) => `authorization: { user: "me", password: "${password}" }`
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: login("first") })),
        (one) => Effect.promise(() => one.stop())
      )
      const log = makeLog()
      const host = `127.0.0.1:${server.port}`
      yield* Effect.gen(function* () {
        yield* natsClients
        yield* Effect.promise(() => server.restartWith(login("second")))
        const refused = Effect.sync(() => log.count(`the broker at ${host} refuses this user`))
        yield* eventually(refused, (count) => count === 1)
        yield* Effect.promise(() => server.restartWith(login("first")))
        const isBack = Effect.sync(() => log.count("the broker is back"))
        yield* eventually(isBack, (count) => count === 1)
        assert.strictEqual(yield* refused, 1)
      }).pipe(
        Effect.provide(connectTo({ url: `nats://me:first@${host}` })),
        Effect.provide(log.layer)
      )
    }).pipe(Effect.scoped)
  )
})
