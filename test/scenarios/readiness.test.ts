import { rm } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import {
  endpoint,
  eventually,
  history,
  installation,
  publish,
  quickRetry,
  startedWorker,
  testTopology,
  worker
} from "../kit/engine.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, quiet } from "../kit/scenario.ts"

const { scenario } = onServer()

/** Removes a stream, as a person does with a command-line tool of the broker. */
const remove = (stream: string) =>
  Effect.gen(function* () {
    const { ask, jsm } = yield* natsClients
    return yield* ask("remove", () => jsm.streams.delete(stream))
  })

/** Waits until a worker says what keeps it from its work. */
const said = (problems: () => ReadonlyArray<string>, wanted: ReadonlyArray<string>) =>
  eventually(Effect.sync(problems), (those) => those.join() === wanted.join())

describe.concurrent("a worker is not ready", () => {
  scenario("while the bucket of retry records is missing, until there is one again", () =>
    Effect.gen(function* () {
      const { names } = yield* natsClients
      const hook = yield* receiver({ answer: { status: 500 } })
      yield* endpoint({ url: hook.url, retry: quickRetry() })
      const { problems } = yield* worker()
      assert.deepStrictEqual(problems(), [])
      yield* remove(`KV_${names.buckets.retries}`)
      yield* publish("a", "1")
      yield* said(problems, [
        "the broker takes no retry records: nothing new is sent until it does"
      ])
      yield* init(testTopology)
      yield* said(problems, [])
    })
  )

  scenario("while there are no events to be had: their stream is missing", () =>
    Effect.gen(function* () {
      const { names } = yield* natsClients
      const { problems } = yield* worker()
      yield* remove(names.events)
      yield* said(problems, [
        `the broker gives no messages of ${names.events}: a stream or consumer is missing, or this user may not ask for them`
      ])
      yield* init(testTopology)
      yield* said(problems, [])
    })
  )

  scenario("while deliveries cannot be stored: their stream is missing", () =>
    Effect.gen(function* () {
      const { names } = yield* natsClients
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      // Without an owner, deliveries go to their queue.
      const { problems } = yield* worker({ roles: ["router"] })
      for (const partition of [0, 1]) yield* remove(names.deliveries(partition))
      yield* publish("a", "1")
      yield* said(problems, ["the broker takes no deliveries: events wait until it does"])
      yield* init(testTopology)
      yield* said(problems, [])
    })
  )

  scenario("while it cannot know all endpoints: their bucket is missing", () =>
    Effect.gen(function* () {
      const { names } = yield* natsClients
      const { problems } = yield* worker()
      yield* remove(`KV_${names.buckets.endpoints}`)
      yield* said(problems, ["routing waits until the endpoints have been read again"])
      yield* init(testTopology)
      yield* said(problems, [])
    })
  )

  scenario("but is where there are more workers than partitions, which leaves it none", () =>
    Effect.gen(function* () {
      for (const id of ["first", "second"]) yield* worker({ id })
      const ids = ["third", "fourth", "fifth"]
      const more = yield* Effect.forEach(ids, (id) => startedWorker({ id }), {
        concurrency: "unbounded"
      })
      const shares = yield* Effect.forEach(more, ({ delivering }) => delivering, {
        concurrency: "unbounded"
      })
      assert.isAtLeast(shares.filter((share) => share.length === 0).length, 1)
      for (const { problems } of more) yield* said(problems, [])
    })
  )

  it.live("while the broker refuses its login, between one attempt and the next as well", () =>
    Effect.gen(function* () {
      const login = (password: string) => `authorization { user: petrel, password: ${password} }`
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: login("former") })),
        (one) => Effect.promise(() => one.stop())
      )
      const url = server.url.replace("//", "//petrel:former@")
      yield* installation({ ...server, url }).run(
        Effect.gen(function* () {
          const { problems } = yield* worker()
          yield* Effect.promise(() => server.restartWith(login("other")))
          yield* said(problems, ["the broker is not connected"])
          const until = Date.now() + 3_000
          while (Date.now() < until) {
            assert.deepStrictEqual(problems(), ["the broker is not connected"])
            yield* Effect.sleep(5)
          }
          yield* Effect.promise(() => server.restart())
          yield* said(problems, [])
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  it.live("while its broker came back empty, until there is an installation again", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer()),
        (one) => Effect.promise(() => one.stop())
      )
      yield* installation(server).run(
        Effect.gen(function* () {
          const hook = yield* receiver()
          yield* endpoint({ url: hook.url })
          yield* endpoint({ id: "other", url: hook.url })
          const { problems } = yield* worker()
          yield* publish("a", "1")
          const facts = yield* history
          yield* facts.count("delivered", 2)
          yield* Effect.promise(async () => {
            await server.kill9()
            await rm(server.storeDir, { recursive: true })
            await server.restart()
          })
          const { flush } = yield* Broker
          yield* Effect.retry(flush, Schedule.spaced("100 millis"))
          yield* init(testTopology)
          yield* said(problems, [])
          yield* endpoint({ url: hook.url })
          yield* publish("a", "2")
          yield* hook.received(3)
          const { judgement } = yield* audit({})
          assert.deepStrictEqual(judgement.problems.list, [])
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  it.live("while it may not ask for messages, and the status has that from its own word", () =>
    Effect.gen(function* () {
      const users = (denied: string) =>
        `authorization { users: [
          { user: me, password: pw },
          { user: worker, password: pw, permissions: { publish: { deny: ["${denied}"] } } }
        ] }`
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: users("nothing") })),
        (one) => Effect.promise(() => one.stop())
      )
      const as = (user: string) => server.url.replace("//", `//${user}:pw@`)
      const those = installation({ ...server, url: as("worker") })
      yield* those.run(
        Effect.gen(function* () {
          const mine = yield* Layer.build(Layer.fresh(connectTo({ ...those, url: as("me") })))
          const status = Effect.provideContext(readStatus, mine)
          const { problems } = yield* worker()
          const ofWorkers = Effect.map(status, (all) =>
            [...all.problems, ...all.notices].filter(({ code }) => code === "worker-not-ready")
          )
          assert.deepStrictEqual(yield* ofWorkers, [])
          yield* Effect.promise(() => server.reloadWith(users("$JS.API.CONSUMER.MSG.NEXT.>")))
          yield* eventually(Effect.sync(problems), (all) => all.length > 0)
          yield* eventually(ofWorkers, (all) =>
            all.some(({ text }) => text.includes("the broker gives no messages of "))
          )
          yield* Effect.promise(() => server.reloadWith(users("nothing")))
          yield* eventually(ofWorkers, (all) => all.length === 0)
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
