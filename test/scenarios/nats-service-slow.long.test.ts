import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { vi } from "vitest"
import { accessTo } from "../../src/broker/access.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { Facts } from "../../src/history/facts.ts"
import { serveNatsApi } from "../kit/console.ts"
import { endpoint, eventually, testTopology, worker } from "../kit/engine.ts"
import { startWithAccounts } from "../kit/nats-accounts.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 300_000 })

/** Longer than a test event takes, ms. */
const timeout = 200_000

describe("with the accounts of nats.conf, a tenant's program", () => {
  it.live("hears what became of a test event that nobody answered for two minutes", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startWithAccounts()),
        ({ stop }) => Effect.promise(stop)
      )
      const connected = (user: "console" | "operator" | "worker") =>
        Layer.build(
          Layer.fresh(Facts.layer.pipe(Layer.provideMerge(connectTo({ url: server.url(user) }))))
        )
      const access = (user: "access_console" | "access_operator") =>
        Layer.build(Layer.fresh(accessTo({ url: server.url(user) })))
      const silent = yield* receiver({ answer: () => undefined })
      yield* Effect.gen(function* () {
        yield* init(testTopology)
        yield* endpoint({ id: "silent", url: silent.url, timeout: "4 minutes" })
      }).pipe(
        Effect.provideContext(yield* connected("operator")),
        Effect.provideContext(yield* access("access_operator"))
      )
      const { delivering } = yield* worker().pipe(Effect.provideContext(yield* connected("worker")))
      yield* delivering
      yield* serveNatsApi().pipe(
        Effect.provideContext(yield* connected("console")),
        Effect.provideContext(yield* access("access_console"))
      )
      const acme = yield* Effect.promise(() => server.as("acme"))
      const ask = (operation: string, timeout: number) =>
        Effect.promise(() =>
          acme
            .request(`petrel.api.v1.acme.${operation}`, '{"id":"silent"}', { timeout })
            .then((message) => message.string(), String)
        )
      yield* eventually(ask("endpoints.get", 1_000), (text) => text.includes('"silent"'))
      const tested = yield* ask("attempts.test", timeout)
      assert.include(tested, '"class":"timeout"')
      assert.deepStrictEqual(server.violations, [])
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
