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

describe("a permission to receive that the broker takes away from a connection", () => {
  it.live("ends a service, which is offered again once it is given back", () =>
    Effect.gen(function* () {
      const permitted = (denied: string) =>
        `authorization { users: [{ user: me, password: pw, permissions: { subscribe: { deny: "${denied}" } } }] }`
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: permitted("unused") })),
        (one) => Effect.promise(() => one.stop())
      )
      const log = makeLog()
      yield* Effect.gen(function* () {
        const { connection } = yield* natsClients
        yield* startMicroService({
          ...{ name: "test", version: "1.0.0", description: "a test", againAfterMs: 100 },
          endpoints: [
            {
              ...{ name: "one", subject: "test.one", metadata: {} },
              answer: () => Effect.succeed({ body: Buffer.from("here"), headers: {} })
            }
          ]
        })
        const asked = Effect.exit(
          ask("ask", () => connection.request("test.one", "", { timeout: 1_000 }))
        )
        const says = (text: string) => Effect.sync(() => log.count(text))
        assert.strictEqual((yield* asked)._tag, "Success")
        for (const times of [1, 2]) {
          yield* Effect.promise(() => server.reloadWith(permitted("test.one")))
          yield* eventually(says("the NATS service has ended"), (count) => count === times)
          assert.strictEqual((yield* asked)._tag, "Failure")
          yield* Effect.promise(() => server.reloadWith(permitted("unused")))
          yield* eventually(says("the NATS service is offered again"), (count) => count === times)
          assert.strictEqual((yield* asked)._tag, "Success")
        }
      }).pipe(
        Effect.scoped,
        Effect.provide(connectTo({ url: server.url.replace("//", "//me:pw@") })),
        Effect.provide(log.layer)
      )
    }).pipe(Effect.scoped)
  )

  it.live("is not asked for by who publishes nothing", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() =>
          startServer({
            config: `authorization { users: [{ user: me, password: pw, permissions: { publish: { deny: ">" }, subscribe: "told.*" } }] }`
          })
        ),
        (one) => Effect.promise(() => one.stop())
      )
      const log = makeLog()
      yield* Effect.gen(function* () {
        const { flush, listen } = yield* natsClients
        yield* Effect.acquireRelease(
          Effect.sync(() => listen("told.*", () => undefined)),
          (stop) => Effect.sync(stop)
        )
        // A refusal comes before the answer to the flush.
        yield* flush
        assert.strictEqual(log.count("the broker does not let this user receive"), 0)
      }).pipe(
        Effect.scoped,
        Effect.provide(connectTo({ url: server.url.replace("//", "//me:pw@") })),
        Effect.provide(log.layer)
      )
    }).pipe(Effect.scoped)
  )

  it.live("is used again once it is given back, by what was subscribed before", () =>
    Effect.gen(function* () {
      const permitted = (subjects: string) =>
        `authorization { users: [{ user: me, password: pw, permissions: { publish: ">", subscribe: [${subjects}] } }] }`
      const all = permitted(`"_INBOX.>", "told.*"`)
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: all })),
        (one) => Effect.promise(() => one.stop())
      )
      const log = makeLog()
      yield* Effect.gen(function* () {
        const { connection, jsm, listen, publisher } = yield* natsClients
        yield* ask("make a stream", () => jsm.streams.add({ name: "S", subjects: ["s"] }))
        const heard: Array<string> = []
        yield* Effect.acquireRelease(
          Effect.sync(() => listen("told.*", (message) => heard.push(message.string()))),
          (stop) => Effect.sync(stop)
        )
        const store = publisher.publish("s", "", [])
        yield* store
        yield* Effect.promise(() => server.reloadWith(permitted("unused")))
        const says = (text: string) => Effect.sync(() => log.count(text))
        for (const subject of ["_INBOX.>", "told.*"])
          yield* eventually(
            says(`the broker does not let this user receive on ${subject}: give it`),
            (count) => count > 0
          )
        yield* Effect.promise(() => server.reloadWith(all))
        for (const subject of ["_INBOX.>", "told.*"])
          yield* eventually(
            says(`the broker lets this user receive on ${subject} again`),
            (count) => count > 0
          )
        yield* store
        connection.publish("told.one", "again")
        yield* eventually(
          Effect.sync(() => heard),
          (all) => all.length === 1
        )
        assert.strictEqual(yield* says("does not let this user receive on told.*"), 1)
      }).pipe(
        Effect.scoped,
        Effect.provide(connectTo({ url: `nats://me:pw@127.0.0.1:${server.port}` })),
        Effect.provide(log.layer)
      )
    }).pipe(Effect.scoped)
  )

  it.live("is named, once, where it is one to publish", () =>
    Effect.gen(function* () {
      const may = `publish: ["$JS.API.STREAM.>", "$JS.API.INFO"], subscribe: ">"`
      const config = `authorization { users: [{ user: me, password: pw, permissions: { ${may} } }] }`
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config })),
        (one) => Effect.promise(() => one.stop())
      )
      const log = makeLog()
      yield* Effect.gen(function* () {
        const { connection, publisher } = yield* natsClients
        for (const subject of ["petrel.history.a.b", "petrel.history.c.d"])
          yield* Effect.flip(publisher.publish(subject, "", []))
        connection.publish("$JS.API.CONSUMER.MSG.NEXT.S.c")
        const said = (subject: string) =>
          Effect.sync(() => log.count(`the broker does not let this user publish to ${subject}:`))
        yield* eventually(said("$JS.API.CONSUMER.MSG.NEXT.S.>"), (count) => count === 1)
        assert.strictEqual(yield* said("petrel.history.>"), 1)
        assert.strictEqual(log.count("does not let"), 2)
      }).pipe(
        Effect.provide(
          connectTo({ url: `nats://me:pw@127.0.0.1:${server.port}`, publishTimeoutMs: 100 })
        ),
        Effect.provide(log.layer)
      )
    }).pipe(Effect.scoped)
  )
})
